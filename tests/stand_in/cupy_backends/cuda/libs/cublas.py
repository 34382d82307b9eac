"""Products whose factors cuBLAS rounds, or gets in 16 bits; sums are float32."""

import ctypes

import numpy as np
from cupy._counts import launched

# By types of the factors and of the computation: name, and bits that are left of a fraction.
_KINDS = {(0, 0, 68): ("", 23), (0, 0, 77): (" tf32", 10), (14, 14, 68): (" bf16", 7)}


def gemmEx(
    handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc,
    computeType, algo,
):  # fmt: skip
    if not handle or Ctype or (Atype, Btype, computeType) not in _KINDS or min(m, n, k) < 1:
        raise ValueError("CUBLAS_STATUS_NOT_SUPPORTED")
    name, bits = _KINDS[Atype, Btype, computeType]
    one = _matrix(A, Atype, *((k, m) if transa else (m, k)), lda, bits)
    other = _matrix(B, Btype, *((n, k) if transb else (k, n)), ldb, bits)
    out = _columns(C, ctypes.c_float, m, n, ldc)
    alpha, beta = (ctypes.c_float.from_address(each).value for each in (alpha, beta))
    launched(f"product{name}")
    product = np.float32(alpha) * ((one.T if transa else one) @ (other.T if transb else other))
    out[...] = product + np.float32(beta) * out if beta else product


def _columns(address, kind, n_rows, n_columns, ld):
    if not address or ld < n_rows:
        raise ValueError("CUBLAS_STATUS_INVALID_VALUE")
    cells = np.ctypeslib.as_array((kind * (ld * n_columns)).from_address(address))
    return cells.reshape(n_columns, ld)[:, :n_rows].T


def _matrix(address, kind, n_rows, n_columns, ld, bits):
    if kind:
        halves = _columns(address, ctypes.c_uint16, n_rows, n_columns, ld)
        return (halves.astype("u4") << 16).view("f")
    cells = _columns(address, ctypes.c_float, n_rows, n_columns, ld)
    if bits == 23:
        return cells
    half = np.uint32(1 << (22 - bits))
    return ((cells.view("u4") + half) & ~np.uint32(2 * half - 1)).view("f")
