"""Wrong replies for training, drawn at random."""

from typing import Any

import numpy as np


def draw_negatives(
    generator: np.random.Generator, rights: np.ndarray, pool: np.ndarray, n: int
) -> np.ndarray:
    """Draw wrong replies for every example: from the pool, as often as they stand in it;
    never the right one, in whose place any other of the pool comes.

    rights (np.ndarray): Number of each example's right reply, shape (n_examples,), int32.
    pool (np.ndarray): Numbers to draw from, at least two different ones, int32.
    n (int): Wrong replies for each example, 1 or more.
    RETURNS (np.ndarray): Shape (n_examples, 1 + n), int32: the right one comes first.
    """
    candidates = np.empty((len(rights), 1 + n), dtype=np.int32)
    candidates[:, 0] = rights
    drawn = pool[generator.integers(0, len(pool), size=(len(rights), n), dtype=np.int32)]
    examples, places = np.nonzero(drawn == rights[:, None])
    if len(examples):
        others: Any = np.unique(pool)
        # One number less than there are; the last stands in for the right one.
        instead = others[generator.integers(0, len(others) - 1, size=len(examples))]
        is_right = instead == rights[examples]
        instead[is_right] = others[-1]
        drawn[examples, places] = instead
    candidates[:, 1:] = drawn
    return candidates
