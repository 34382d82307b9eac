"""How kernels are compiled."""

from typing import Any, Callable, Set

import numba

# Sums may be taken in another order; NaN and infinity stay what they are.
_FAST = {"reassoc", "contract", "arcp", "nsz"}
_ORDERED = {"contract"}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function of arrays and numbers for this machine at its first call; it runs
    without the GIL. What was compiled is kept on disk for the next process.

    function (Callable): In numba's part of Python; it may call other kernels.
    """
    return _compiled(function, _FAST)


def ordered_kernel(function: Callable[..., Any]) -> Any:
    """``kernel`` for what must be added up in the order that it is written in."""
    return _compiled(function, _ORDERED)


def _compiled(function: Callable[..., Any], liberties: Set[str]) -> Any:
    settings: Any = {"nogil": True, "error_model": "numpy", "fastmath": liberties}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # There is no folder that it could be kept in.
        return numba.njit(**settings)(function)
