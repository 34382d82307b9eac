"""Random draws by kernels are those of SplitMix64, mapped to the pool."""

import numpy as np
import pytest

from thincdialog.ops.compiled import load_kernels

pytest.importorskip("numba")
# The first numbers of SplitMix64 with seed 0, as published with it.
PUBLISHED = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)


def draw(seed, rights, pool, n):
    drawn = np.zeros((len(rights), n), dtype="i")
    arrays = np.array(rights, dtype="i"), np.array(pool, dtype="i")
    load_kernels("draws").draw_others(np.uint64(seed), *arrays, drawn)
    return drawn


def test_draws_are_the_upper_bits_of_splitmix64():
    (drawn,) = draw(0, [1 << 16], range(1 << 16), 3)
    assert drawn.tolist() == [number >> 48 for number in PUBLISHED]


def test_draws_of_every_example_follow_each_other():
    rights, pool = [9] * 4, range(5)
    (in_a_row,) = draw(7, rights[:1], pool, 12)
    assert draw(7, rights, pool, 3).ravel().tolist() == in_a_row.tolist()
    assert draw(8, rights, pool, 3).ravel().tolist() != in_a_row.tolist()


def test_draws_of_the_highest_seed_overflow_as_they_should():
    drawn = draw((1 << 64) - 1, [0, 1], [0, 1, 1], 50)
    assert (drawn[0] == 1).all() and (drawn[1] == 0).all()
