import numpy as np

from ._array import ndarray, wrap
from ._counts import launched


def norm(x, ord=None, axis=None, keepdims=False):
    if not isinstance(x, ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    launched("norm", 3)
    return wrap(np.linalg.norm(x._a, ord, axis, keepdims))
