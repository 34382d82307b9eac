"""How kernels are compiled."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Set, Tuple

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
    # What a kernel calls is part of it: else the process that compiles it would use the called
    # one's own code, one that reads it from disk a copy, and their last bits may differ.
    settings: Any = {
        "nogil": True, "error_model": "numpy", "fastmath": liberties, "forceinline": True
    }  # fmt: skip
    try:
        compiled = numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # There is no folder that it could be kept in.
        return numba.njit(**settings)(function)
    # Numba compares the time of the function's own file only. A kernel also depends on the
    # kernels that it calls and on the types of its arguments, which are in other files. Numba
    # compares the version before it unpickles the types, of which some may be gone.
    kept: Any = getattr(compiled._cache, "_cache_file", None)
    if hasattr(kept, "_version"):
        kept._version = (kept._version, _stamp(Path(function.__code__.co_filename).parent))
    return compiled


@lru_cache(maxsize=None)
def _stamp(folder: Path) -> Tuple[Tuple[str, int, int], ...]:
    """What changes with any Python file of a folder and of the folder that holds it."""
    files = sorted([*folder.parent.glob("*.py"), *folder.glob("*.py")])
    facts = [(file.name, file.stat()) for file in files]
    return tuple((name, fact.st_mtime_ns, fact.st_size) for name, fact in facts)
