"""Batches of messages in columns."""

from thincdialog.messages import Message, MessageBatch, column


def test_messages_of_columns_compute_their_cells_on_first_use():
    asked = []

    def texts():
        asked.append(True)
        return ["milk", "tea", "milk"]

    replies = MessageBatch({"text": texts, "loss": [0.5, 0.25, 1.0]}, 3)
    assert len(replies) == 3 and column(replies, "id") == [None] * 3 and not asked
    assert column(replies, "loss") == [0.5, 0.25, 1.0] and not asked
    assert column(replies, "text") == ["milk", "tea", "milk"] and asked
    assert [reply["text"] for reply in replies] == ["milk", "tea", "milk"]
    assert replies[1] == Message(text="tea", loss=0.25)
