"""Arrays that are aligned to cache lines."""

from typing import Any

import numpy
from thinc.types import Floats1d

# Bytes of a cache line and of an AVX-512 register. With unaligned rows of 128 floats, the
# compiled steps take up to a sixth longer.
ALIGNMENT = 64
_FLOATS = ALIGNMENT // 4


def aligned_size(size: int) -> int:
    """Return the number of floats that an array takes up, including the gap before the next aligned
    array."""
    return -(-size // _FLOATS) * _FLOATS


def aligned_zeros(length: int, xp: Any = numpy) -> Floats1d:
    """Return zeros, float32, whose first byte lies at a multiple of ``ALIGNMENT``.

    xp (module): NumPy or CuPy.
    """
    array = xp.zeros(length + _FLOATS, dtype="float32")
    start = -address(array) % ALIGNMENT // 4
    return array[start : start + length]


def address(array: Any) -> int:
    """Return the address of the array's first byte on its device."""
    return array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data
