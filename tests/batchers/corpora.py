"""Lengths to batch: known corpora, and simple sums to check batches."""

import itertools
import math
import random
from typing import List, Sequence, Tuple

import numpy as np

from thincdialog.batchers import Lengths

# Words of the twelve film quotes in ParlAI's tutorial on dynamic batching.
QUOTES = [8, 10, 17, 2, 2, 38, 6, 12, 6, 12, 13, 5]


def lengths_of(rows: Sequence[Sequence[int]], padded: Sequence[bool] = ()) -> Lengths:
    """Make the lengths of rows that are given as tuples. By default all fields are padded."""
    counts = np.array(rows, dtype=np.int64)
    return Lengths(counts, tuple(padded) or (True,) * counts.shape[1])


def quotes() -> Lengths:
    return lengths_of([[n_words] for n_words in QUOTES])


def _texts(rng: np.random.Generator, size, longest: int) -> np.ndarray:
    return np.clip(np.round(rng.lognormal(math.log(12), 0.8, size)), 1, longest).astype(np.int64)


def one_field(n_rows: int, seed: int = 0) -> Lengths:
    """Draw texts of 12 words in the median, up to 200."""
    return lengths_of(_texts(np.random.default_rng(seed), (n_rows, 1), 200))


def two_fields(n_rows: int, seed: int = 0) -> Lengths:
    """Draw contexts of 1 to 8 turns, cut at 256 tokens, and labels of up to 64."""
    rng = np.random.default_rng(seed)
    n_turns = rng.integers(1, 9, n_rows)
    is_there = np.arange(8) < n_turns[:, None]
    turns = (_texts(rng, (n_rows, 8), 200) * is_there).sum(axis=1)
    contexts = np.minimum(turns * 1.5, 256).astype(np.int64)
    return lengths_of(np.stack([contexts, _texts(rng, n_rows, 64)], axis=1))


def skewed() -> Lengths:
    """Draw the training rows of skewed.jsonl: texts and labels of 12 words in the median, up to
    200, independent of each other."""
    rng = random.Random(1234)
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(1000)))

    def n_words() -> int:
        return max(1, min(200, round(rng.lognormvariate(math.log(12), 0.8))))

    rows = []
    for _ in range(4000):
        text, label = n_words(), n_words()
        # The words themselves are drawn from the same generator.
        rng.choices(range(1000), cum_weights=weights, k=text)
        rows.append((text, label))
    return lengths_of(rows)


def cells(rows: Sequence[Sequence[int]], padded: Sequence[bool]) -> int:
    """Count the cells of rows in one batch, without tricks."""
    total = 0
    for field, is_padded in enumerate(padded):
        words = [row[field] for row in rows]
        total += len(rows) * max(words) if is_padded else sum(words)
    return total


def batch_cells(lengths: Lengths, batches: Sequence[Sequence[int]]) -> List[int]:
    """Return the cells of each batch."""
    rows = lengths.counts.tolist()
    return [cells([rows[row] for row in batch], lengths.padded) for batch in batches]


def padding(lengths: Lengths, batches: Sequence[Sequence[int]]) -> float:
    """Return the fraction of cells that are padding."""
    return 1 - int(lengths.counts.sum()) / sum(batch_cells(lengths, batches))


def order_follows_length(lengths: Lengths, batches: Sequence[Sequence[int]]) -> float:
    """Return the correlation between the number of a batch and the mean length of its rows."""
    words = lengths.counts.sum(axis=1)
    means = [words[np.array(batch)].mean() for batch in batches]
    return float(np.corrcoef(np.arange(len(means)), means)[0, 1])


def live(buffer, lengths: Lengths, order: Sequence[int] = ()) -> List[Tuple[int, List[int]]]:
    """Feed rows to a live buffer whenever it has room, until each was in a batch once.

    RETURNS (List[Tuple[int, List[int]]]): For each batch: the most batches that one of its rows
        has waited for, and the numbers of its rows.
    """
    order = order or range(len(lengths.counts))
    since, batches, fed = {}, [], 0
    while True:
        while fed < len(order) and buffer.missing():
            rows = order[fed : fed + buffer.missing()]
            fed += len(rows)
            since.update(dict.fromkeys(rows, len(batches)))
            buffer.add(rows, lengths.take(np.array(rows)))
        if not len(buffer):
            assert sorted(row for _, batch in batches for row in batch) == sorted(order)
            return batches
        batch = buffer.next_batch(fed < len(order))
        batches.append((len(batches) - min(since[row] for row in batch), batch))
