"""How kernels are compiled."""

from typing import Any, Callable

import numba

# Sums may be taken in another order; NaN and infinity stay what they are.
_FAST = {"reassoc", "contract", "arcp", "nsz"}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function of arrays and numbers for this machine at its first call; it runs
    without the GIL. What was compiled is kept on disk for the next process.

    function (Callable): In numba's part of Python; it may call other kernels.
    """
    compile_it = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=_FAST)
    return compile_it(function)
