"""Replies while an agent learns."""

import numpy as np

from thincdialog.agents.judged_replies import JudgedReplies
from thincdialog.messages import Message, column


def test_judged_replies_find_their_texts_when_somebody_looks():
    asked = []

    def texts():
        asked.append(True)
        return ["tea", "milk"]

    replies = JudgedReplies(np.array([1, 0, 1]), texts)
    assert len(replies) == 3 and column(replies, "id") == [None] * 3 and not asked
    assert column(replies, "text") == ["milk", "tea", "milk"]
    assert list(replies) == [Message(text=text) for text in ("milk", "tea", "milk")]
    assert replies[1] == {"text": "tea"}
