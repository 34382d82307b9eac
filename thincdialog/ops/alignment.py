"""Arrays that begin where a line of the cache does."""

from typing import Any

import numpy
from thinc.types import Floats1d

# Bytes: a cache line, an AVX-512 register. Rows of 128 floats that begin elsewhere cost the
# compiled steps up to a sixth more.
ALIGNMENT = 64
_FLOATS = ALIGNMENT // 4


def aligned_size(size: int) -> int:
    """Floats that a number of floats takes up, the gap to the next aligned one included."""
    return -(-size // _FLOATS) * _FLOATS


def aligned_zeros(length: int, xp: Any = numpy) -> Floats1d:
    """Zeros, float32, whose first byte lies at a multiple of ``ALIGNMENT``.

    xp (module): NumPy or CuPy.
    """
    array = xp.zeros(length + _FLOATS, dtype="float32")
    start = -address(array) % ALIGNMENT // 4
    return array[start : start + length]


def address(array: Any) -> int:
    """Where the array's first byte lies, on its device."""
    return array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data
