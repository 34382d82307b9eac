"""Replies while an agent learns."""

import numpy as np

from thincdialog.agents.judged_replies import JudgedReplies
from thincdialog.messages import Message, column


def test_judged_replies_find_their_texts_when_somebody_looks():
    asked = []

    def texts():
        asked.append(True)
        return ["tea", "milk"]

    replies = JudgedReplies(np.array([1, 0, 1]), texts, np.array([0.5, 0.25, 1.0]))
    assert len(replies) == 3 and column(replies, "id") == [None] * 3 and not asked
    assert column(replies, "text") == ["milk", "tea", "milk"]
    assert column(replies, "loss") == [0.5, 0.25, 1.0]
    assert [reply["text"] for reply in replies] == ["milk", "tea", "milk"]
    assert replies[1] == Message(text="tea", loss=0.25)
