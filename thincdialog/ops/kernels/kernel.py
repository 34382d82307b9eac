"""Decorators that compile kernels."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Set, Tuple

import numba

# The compiler may reorder sums, but must keep NaN and infinity.
_FAST = {"reassoc", "contract", "arcp", "nsz"}
_ORDERED = {"contract"}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function of arrays and numbers for this machine at its first call. The compiled
    function runs without the GIL, and is cached on disk for the next process.

    function (Callable): Must use the part of Python that numba supports; it may call other kernels.
    """
    return _compiled(function, _FAST)


def ordered_kernel(function: Callable[..., Any]) -> Any:
    """Compile like ``kernel``, but keep the order of additions as written."""
    return _compiled(function, _ORDERED)


def _compiled(function: Callable[..., Any], liberties: Set[str]) -> Any:
    """Compile a kernel; ``liberties`` are the fast-math flags of LLVM."""
    # Inline the kernels that a kernel calls. Otherwise the process that compiles a kernel would
    # call another copy of them than a process that loads it from disk, and the last bits of the
    # results may differ.
    settings: Any = {
        "nogil": True, "error_model": "numpy", "fastmath": liberties, "forceinline": True
    }  # fmt: skip
    try:
        compiled = numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # There is no folder for the cache.
        return numba.njit(**settings)(function)
    # Numba compares the time of the function's own file only. A kernel also depends on the
    # kernels that it calls and on the types of its arguments, which are in other files. Numba
    # compares the version before it unpickles the types, some of which may no longer exist.
    kept: Any = getattr(compiled._cache, "_cache_file", None)
    if hasattr(kept, "_version"):
        kept._version = (kept._version, _stamp(Path(function.__code__.co_filename).parent))
    return compiled


@lru_cache(maxsize=None)
def _stamp(folder: Path) -> Tuple[Tuple[str, int, int], ...]:
    """Return names, times and sizes of all Python files in a folder and in its parent folder. The
    result changes with any of these files."""
    files = sorted([*folder.parent.glob("*.py"), *folder.glob("*.py")])
    facts = [(file.name, file.stat()) for file in files]
    return tuple((name, fact.st_mtime_ns, fact.st_size) for name, fact in facts)
