import numpy as np

from ._array import wrap
from ._counts import launched


def nrm2(x, out=None):
    if x.ndim != 1:
        raise ValueError("x must be a 1D array")
    launched("cublas nrm2")
    return wrap(np.asarray(np.linalg.norm(x._a), dtype=x.dtype))
