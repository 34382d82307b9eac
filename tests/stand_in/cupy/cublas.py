import numpy as np

from ._array import wrap
from ._counts import launched


def nrm2(x, out=None):
    if x.ndim != 1:
        raise ValueError("x must be a 1D array")
    launched("cublas nrm2")
    return wrap(np.asarray(np.linalg.norm(x._a), dtype=x.dtype))


def gemm(transa, transb, a, b, out=None, alpha=1.0, beta=0.0):
    if not a.ndim == b.ndim == 2 or a.dtype != b.dtype or {transa, transb} - {"N", "T"}:
        raise TypeError("two matrices of one type, each 'N' or 'T'")
    if not all(each.flags.c_contiguous or each.flags.f_contiguous for each in (a, b, out)):
        raise NotImplementedError("strided arrays, which are copied")
    launched("cublas gemm")
    product = (a._a.T if transa == "T" else a._a) @ (b._a.T if transb == "T" else b._a)
    out._a[...] = alpha * product + beta * out._a
    return out
