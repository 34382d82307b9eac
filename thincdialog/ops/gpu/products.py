"""Products of float32 matrices on a GPU whose factors are rounded; sums and results are float32."""

from typing import Any

import numpy

from . import kernels

# cuBLAS's numbers: of types of matrices, of ways to compute, of whether a matrix is transposed,
# and of the algorithm that it chooses itself.
_FLOAT32, _BF16 = 0, 14
_COMPUTE_FLOAT32, _COMPUTE_TF32 = 68, 77
_AS_IT_IS, _TRANSPOSED, _ITS_CHOICE = 0, 1, -1
# Read by cuBLAS from the host's memory.
_FACTORS = numpy.array([0, 1], dtype="f")


def multiply(
    precision: str,
    x: Any,
    y: Any,
    out: Any = None,
    *,
    is_added: bool = False,
    trans1: bool = False,
    trans2: bool = False,
) -> Any:
    """Product of two matrices, either of them transposed if wanted.

    precision (str): "tf32": cuBLAS may round factors to 10 bits behind the point as it reads
        them; "bf16": they are rounded to 7 before, and take half of the memory.
    x, y (Floats2d): Not empty.
    out (Optional[Floats2d]): Contiguous. New if None.
    is_added (bool): Whether the product is added to what is there.
    """
    import cupy
    from cupy_backends.cuda.libs import cublas

    x, y = (cupy.ascontiguousarray(each) for each in (x, y))
    n, k = x.shape[::-1] if trans1 else x.shape
    m = y.shape[0 if trans2 else 1]
    beta = _FACTORS[int(is_added) :]
    out = cupy.empty((n, m), dtype="f") if out is None else out
    kind, compute = _FLOAT32, _COMPUTE_TF32
    if precision == "bf16":
        (x, y), kind, compute = kernels.round_to_bf16(x, y), _BF16, _COMPUTE_FLOAT32
    turned = [_TRANSPOSED if each else _AS_IT_IS for each in (trans2, trans1)]
    # cuBLAS reads rows as columns: for it, the factors are transposed and change places.
    cublas.gemmEx(
        cupy.cuda.device.get_cublas_handle(), *turned, m, n, k,
        _FACTORS[1:].ctypes.data, y.data.ptr, kind, y.shape[1], x.data.ptr, kind, x.shape[1],
        beta.ctypes.data, out.data.ptr, _FLOAT32, m, compute, _ITS_CHOICE,
    )  # fmt: skip
    return out
