"""What rows take up: the words of their context and of their label."""

from typing import NamedTuple, Sequence, Tuple

import numpy as np

from ..messages import Message, column


class Lengths(NamedTuple):
    """Words (tokens, for agents that have any) of each field of each row.

    counts (np.ndarray): Shape (n_rows, n_fields), int64, 0 or more. The fields are the
        agent's: usually the context, and in training the label.
    padded (Tuple[bool, ...]): Of each field, whether the agent lays it out as a
        rectangle, as wide as the longest row of the batch.
    """

    counts: np.ndarray
    padded: Tuple[bool, ...]

    @property
    def totals(self) -> np.ndarray:
        """Words of each row, at least 1; shape (n_rows,), int64."""
        return np.maximum(row_sums(self.counts), 1)

    def take(self, rows: np.ndarray) -> "Lengths":
        """Some of the rows, in the given order."""
        return Lengths(self.counts[rows], self.padded)

    def cells(self) -> int:
        """Cells that the rows take up together, as one batch."""
        if not len(self.counts):
            return 0
        widest, sums = self.counts.max(axis=0), self.counts.sum(axis=0)
        n_rows = len(self.counts)
        fields = zip(self.padded, widest.tolist(), sums.tolist())
        return max(1, sum(n_rows * most if padded else total for padded, most, total in fields))


def row_sums(counts: np.ndarray) -> np.ndarray:
    """``counts.sum(axis=1)``, many times faster where rows are short."""
    return np.ascontiguousarray(counts.T).sum(axis=0)


def count_words(messages: Sequence[Message]) -> Lengths:
    """The measure for agents that have none of their own: words between white space,
    of the text with its ``context``, and of the first of its ``labels``.

    messages (Sequence[Message]): As the agent observes them.
    RETURNS (Lengths): Two fields, both padded.
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
