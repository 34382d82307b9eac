"""A strict stand-in for CuPy. NumPy computes, but arrays are only copied between host and device if
asked for, everything that CuPy refuses is refused, and the work of a device is counted.

    PYTHONPATH=tests/stand_in python -m pytest -m gpu

CUPY_STAND_IN = "13" in the environment selects the few functions of CuPy 13 that differ; with it,
``make test-gpu`` runs no long trainings and no clusters. The stand-in tests logic, launches (their
minimum), waits and copies, but no speed and no rounding.
"""

import numpy as _numpy

from . import _array, _functions, _kernels
from ._array import ndarray
from ._counts import IS_13, counted
from ._functions import *  # noqa: F403
from ._functions import ufunc
from ._kernels import ElementwiseKernel, RawKernel, RawModule, ReductionKernel
from ._memory import pool

from . import cublas, cuda, linalg, random, testing  # isort: skip

__version__ = "13.6.0" if IS_13 else "14.2.0"
is_stand_in = True

for _name in dir(_functions):
    if not _name.startswith("_") and _name not in ("np", "plain", "wrap", "into", "view"):
        globals()[_name] = getattr(_functions, _name)
for _name in """bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 intp
inf nan pi e newaxis dtype integer floating issubdtype finfo iinfo""".split():
    globals()[_name] = getattr(_numpy, _name)


def from_dlpack(array):
    raise NotImplementedError


def fuse(*args, **more):
    return args[0] if args else lambda function: function


def get_default_memory_pool():
    return pool
