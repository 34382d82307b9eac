"""Random draws of wrong replies and wrong classes (negative sampling)."""

import numpy as np

from ..ops.compiled import load_kernels

# More negatives for each example do not train better, and a mistyped number would use up all
# memory.
MAX_NEGATIVES = 1_000_000


def check_negatives(n: int, least: int, or_else: str = "") -> None:
    """Check the number of negatives for each example.

    n (int): The number.
    least (int): Lowest valid number.
    or_else (str): Text for the error message: the meaning of numbers below 1, if any.
    RAISES (ValueError): If the number is below ``least`` or above ``MAX_NEGATIVES``.
    """
    if not least <= n <= MAX_NEGATIVES:
        raise ValueError(f"negatives = {n}, expected 1 to {MAX_NEGATIVES:,}{or_else}")


def draw_negatives(
    generator: np.random.Generator, rights: np.ndarray, pool: np.ndarray, n: int
) -> np.ndarray:
    """Draw wrong replies for every example. A reply is drawn in proportion to its count in the
    pool; if the draw is the right reply, another reply of the pool replaces it.

    generator (np.random.Generator): Generator that seeds the draws.
    rights (np.ndarray): Number of each example's right reply, shape (n_examples,), int32.
    pool (np.ndarray): Reply numbers to draw from, with at least two different ones, int32.
    n (int): Number of wrong replies for each example, 1 or more.
    RETURNS (np.ndarray): Reply numbers, shape (n_examples, 1 + n), int32; the right reply is first.
    RAISES (MissingPackageError): If there are no compiled kernels.
    RAISES (ValueError): If all numbers in the pool are the same.
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
    """Draw wrong classes for every example, with probabilities proportional to their masses.

    generator (np.random.Generator): Generator of the draws.
    rights (np.ndarray): Number of each example's right class, shape (n_examples,), int32.
    masses (np.ndarray): Mass of each class, 1 or more; at least two classes, int64.
    n (int): Number of wrong classes for each example, 1 or more.
    RETURNS (np.ndarray): Class numbers, shape (n_examples, 1 + n), int32; the right class is first.
    """
    ends = masses.cumsum()
    of_right = masses[rights][:, None]
    # Draw as if the right class had no mass, then skip its interval.
    drawn = generator.integers(0, ends[-1] - of_right, size=(len(rights), n))
    drawn += np.where(drawn >= ends[rights][:, None] - of_right, of_right, 0)
    candidates = np.empty((len(rights), 1 + n), dtype=np.int32)
    candidates[:, 0] = rights
    candidates[:, 1:] = np.searchsorted(ends, drawn, side="right")
    return candidates
