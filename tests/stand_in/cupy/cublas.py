import numpy as np

from ._array import wrap
from ._counts import launched


def nrm2(x, out=None):
    if x.ndim != 1:
        raise ValueError("x must be a 1D array")
    launched("cublas nrm2", 1, x.size)
    return wrap(np.asarray(np.linalg.norm(x._a), dtype=x.dtype))


def gemm(transa, transb, a, b, out=None, alpha=1.0, beta=0.0):
    if not all(each is None or each.flags.c_contiguous for each in (a, b, out)):
        raise NotImplementedError("copies of strided matrices")
    one, two = (
        each._a.T if trans == "T" else each._a for trans, each in ((transa, a), (transb, b))
    )
    launched("product", 1, max(a.size, b.size))
    product = np.float32(alpha) * (one @ two)
    if out is None:
        return wrap(product)
    out._a[...] = product + np.float32(beta) * out._a if beta else product
    return out
