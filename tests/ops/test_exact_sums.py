"""Vectors on the grid are close to the given ones, and their products are exact in any order."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.ops.exact_sums import all_products, on_grid

WIDTHS, SEEDS = st.integers(1, 600), st.integers(0, 2**32)


def vectors_of(n, width, seed, power=0):
    rng = np.random.default_rng(seed)
    # If all numbers have the largest value, sums need the most bits.
    numbers = rng.normal(size=(n, width)) if seed % 2 else np.full((n, width), 1 - 2.0**-24)
    return np.ldexp(numbers, power).astype("f")


@given(WIDTHS, SEEDS, st.integers(-40, 40))
def test_products_are_those_of_fractions(width, seed, power):
    vectors = vectors_of(3, width, seed, power)
    found = on_grid(vectors)
    highest = abs(vectors).max(axis=1, keepdims=True)
    assert found.dtype == "f" and (abs(found - vectors) <= highest * 2.0**-21).all()
    rows = [list(map(Fraction, row)) for row in found.tolist()]
    sums = [[sum(map(Fraction.__mul__, left, right)) for right in rows] for left in rows]
    doubles = found.astype("d")
    assert (all_products(doubles, doubles) == np.array(sums, dtype="d").astype("f")).all()


@given(st.integers(0, 600), WIDTHS, SEEDS)
def test_products_do_not_depend_on_what_else_is_multiplied(n, width, seed):
    sizes = ((9, width, seed), (n, width, seed + 1))
    left, right = (on_grid(vectors_of(*size)).astype("d") for size in sizes)
    together = all_products(left, right)
    assert (all_products(left[::-1, ::-1], right[:, ::-1])[::-1] == together).all()
    for row in range(9):
        assert (all_products(left[row : row + 1], right)[0] == together[row]).all()


def test_a_vector_of_zeros_is_unchanged():
    assert (on_grid(np.zeros((2, 5), dtype="f")) == 0).all()
