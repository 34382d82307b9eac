"""Random draws."""

from typing import Any

import numpy as np

from .kernel import kernel

_U = np.uint64


@kernel
def draw_others(seed: int, rights: Any, pool: Any, drawn: Any) -> bool:
    """Draw numbers from a pool for every example; replace draws of the right number by other ones.

    seed (int): Seed of the draws, uint64.
    rights (Ints1d): The right number of each example, from 0, shape (n_examples,), int32.
    pool (Ints1d): Numbers to draw from, from 0, at least two different ones, int32.
    drawn (Ints2d): Shape (n_examples, n), int32; written.
    RETURNS (bool): Whether the pool has two different numbers.
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
                # Draw among all numbers but one; if it is the right one, take the last number.
                state += more
                number = others[_below(state, n - 1)]
                if number == right:
                    number = others[n - 1]
            drawn[example, k] = number
    return True


@kernel
def _below(state: Any, n: int) -> Any:
    """Return a whole number from 0 to n - 1, for n below 2**31. It comes from the upper 32 bits of
    the mixed state; no number is favoured by more than n / 2**32."""
    z = state
    z = (z ^ (z >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _U(27))) * _U(0x94D049BB133111EB)
    z = z ^ (z >> _U(31))
    return np.int64(((z >> _U(32)) * _U(n)) >> _U(32))
