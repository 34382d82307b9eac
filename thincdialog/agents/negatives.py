"""Wrong replies for training, drawn at random."""

import numpy as np

from ..ops.compiled import load_kernels

# More for an example train no better, and a mistyped number would take all memory.
MAX_NEGATIVES = 1_000_000


def check_negatives(n: int, least: int, or_else: str = "") -> None:
    """See that a number of wrong ones for each example is one.

    least (int): The smallest.
    or_else (str): What that means, for the message.
    RAISES (ValueError): If it is smaller, or larger than ``MAX_NEGATIVES``.
    """
    if not least <= n <= MAX_NEGATIVES:
        raise ValueError(f"negatives = {n}, expected 1 to {MAX_NEGATIVES:,}{or_else}")


def draw_negatives(
    generator: np.random.Generator, rights: np.ndarray, pool: np.ndarray, n: int
) -> np.ndarray:
    """Draw wrong replies for every example: from the pool, as often as they are in it;
    never the right one, in whose place any other of the pool comes.

    rights (np.ndarray): Number of each example's right reply, shape (n_examples,), int32.
    pool (np.ndarray): Numbers to draw from, at least two different ones, int32.
    n (int): Wrong replies for each example, 1 or more.
    RETURNS (np.ndarray): Shape (n_examples, 1 + n), int32: the right one comes first.
    RAISES (MissingPackageError): If there are no compiled kernels.
    RAISES (ValueError): If all of the pool are the same.
    """
    candidates = np.empty((len(rights), 1 + n), dtype=np.int32)
    candidates[:, 0] = rights
    seed = generator.integers(0, 1 << 64, dtype=np.uint64)
    if not load_kernels("draws").draw_others(seed, rights, pool, candidates[:, 1:]):
        raise ValueError("the data has only one reply: there is no wrong one to draw")
    return candidates


def draw_classes(
    generator: np.random.Generator, rights: np.ndarray, masses: np.ndarray, n: int
) -> np.ndarray:
    """Draw wrong classes for every example, each as often as its mass says; never the right
    one.

    rights (np.ndarray): Number of each example's class, shape (n_examples,), int32.
    masses (np.ndarray): Of the classes, each 1 or more; two classes or more, int64.
    n (int): Wrong classes for each example, 1 or more.
    RETURNS (np.ndarray): Shape (n_examples, 1 + n), int32: the right one comes first.
    """
    ends = masses.cumsum()
    of_right = masses[rights][:, None]
    # As if the right one had no mass: what lies after it moves up.
    drawn = generator.integers(0, ends[-1] - of_right, size=(len(rights), n))
    drawn += np.where(drawn >= ends[rights][:, None] - of_right, of_right, 0)
    candidates = np.empty((len(rights), 1 + n), dtype=np.int32)
    candidates[:, 0] = rights
    candidates[:, 1:] = np.searchsorted(ends, drawn, side="right")
    return candidates
