"""Random draws."""

from typing import Any

import numpy as np

from .kernel import kernel

_U = np.uint64


@kernel
def draw_others(seed: int, rights: Any, pool: Any, drawn: Any) -> bool:
    """Draw from a pool for every example; in place of its right one any other comes.

    seed (int): Of the draws, uint64.
    rights (Ints1d): Number of each example's right one, from 0, shape (n_examples,), int32.
    pool (Ints1d): Numbers to draw from, from 0, at least two different ones, int32.
    drawn (Ints2d): Shape (n_examples, n), int32; written.
    RETURNS (bool): Whether there were two to draw from.
    """
    is_there = np.zeros(pool.max() + 1, np.bool_)
    for k in range(len(pool)):
        is_there[pool[k]] = True
    others = np.flatnonzero(is_there)
    n = len(others)
    if n < 2:
        return False
    # States of SplitMix64 (Steele, Lea and Flood 2014).
    state, more = _U(seed), _U(0x9E3779B97F4A7C15)
    for example in range(drawn.shape[0]):
        right = rights[example]
        for k in range(drawn.shape[1]):
            state += more
            number = pool[_below(state, len(pool))]
            if number == right:
                # One number less than there are; the last replaces the right one.
                state += more
                number = others[_below(state, n - 1)]
                if number == right:
                    number = others[n - 1]
            drawn[example, k] = number
    return True


@kernel
def _below(state: Any, n: int) -> Any:
    """A whole number from 0 to n - 1, for n below 2**31: of the state's upper 32 bits, well
    mixed, which favours none by more than n / 2**32."""
    z = state
    z = (z ^ (z >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _U(27))) * _U(0x94D049BB133111EB)
    z = z ^ (z >> _U(31))
    return np.int64(((z >> _U(32)) * _U(n)) >> _U(32))
