"""Lengths of rows: the numbers of words of their contexts and labels."""

from typing import Any, NamedTuple, Sequence, Tuple

import numpy as np

from ..messages import Message, column


class Lengths(NamedTuple):
    """Hold the number of words of each field of each row; tokens, if the agent has a tokenizer.

    counts (np.ndarray): Number of words, 0 or more; shape (n_rows, n_fields), int64. The agent
        defines the fields: usually the context, and in training also the label.
    padded (Tuple[bool, ...]): For each field, whether the agent pads it to a rectangle, as wide as
        the longest row of the batch.
    """

    counts: np.ndarray
    padded: Tuple[bool, ...]

    @property
    def totals(self) -> np.ndarray:
        """Number of words of each row, at least 1; shape (n_rows,), int64."""
        return np.maximum(self.counts.sum(axis=1), 1)

    def take(self, rows: Any) -> "Lengths":
        """Return the lengths of some of the rows, in the given order."""
        return Lengths(self.counts[rows], self.padded)

    def cells(self) -> int:
        """Return the number of cells that the rows take as one batch: words, and padding in padded
        fields."""
        if not len(self.counts):
            return 0
        widest, sums = self.counts.max(axis=0), self.counts.sum(axis=0)
        n_rows = len(self.counts)
        fields = zip(self.padded, widest.tolist(), sums.tolist())
        return max(1, sum(n_rows * most if padded else total for padded, most, total in fields))


def are_lengths(value: Any, observations: Sequence[Message]) -> bool:
    """Return whether a value is the lengths of some observations, in one field or more."""
    if not isinstance(value, Lengths) or not len(value.padded):
        return False
    counts, shape = value.counts, (len(observations), len(value.padded))
    is_array = isinstance(counts, np.ndarray) and counts.dtype.kind in "iu"
    return is_array and counts.shape == shape and bool(counts.min(initial=0) >= 0)


def count_words(messages: Sequence[Message]) -> Lengths:
    """Count words, separated by white space: those of the ``text`` with its ``context``, and those
    of the first of the ``labels``. Used for agents that do not measure rows themselves.

    messages (Sequence[Message]): Messages as the agent observes them.
    RETURNS (Lengths): Lengths of two fields, context and label, both padded.
    """
    texts = column(messages, "text")
    counts = np.zeros((len(texts), 2), dtype=np.int64)
    counts[:, 0] = [len(text.split()) if text else 0 for text in texts]
    contexts = column(messages, "context")
    if any(contexts):
        counts[:, 0] += [sum(len(turn.split()) for _, turn in turns or ()) for turns in contexts]
    labels = column(messages, "labels")
    counts[:, 1] = [len(answers[0].split()) if answers else 0 for answers in labels]
    return Lengths(counts, (True, True))
