import pytest

from thincdialog.ops.alignment import ALIGNMENT, address, aligned_size, aligned_zeros

from .array_backends import EACH_OPS


@EACH_OPS
@pytest.mark.parametrize("length", [1, 16, 100_003])
def test_aligned_zeros_begin_at_a_cache_line(ops, length):
    arrays = [aligned_zeros(length, ops.xp) for _ in range(5)]
    for array in arrays:
        assert address(array) % ALIGNMENT == 0
        assert array.shape == (length,) and array.dtype == "float32"
        assert isinstance(array, ops.xp.ndarray) and not array.any()


@pytest.mark.parametrize("size, expected", [(0, 0), (1, 16), (16, 16), (17, 32)])
def test_aligned_size_leaves_the_next_one_aligned(size, expected):
    assert aligned_size(size) == expected
