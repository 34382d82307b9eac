"""Record the GPU requests of code, as far as Python can observe them: kernels, waits, copies."""

import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import numpy
import thinc.backends._custom_kernels
import thinc.backends.cupy_ops
from thinc.api import Ops

from ..ops.gpu import kernels

LAUNCH, WAIT, FROM_HOST, TO_HOST = "launches", "waits", "from_host", "to_host"
# A function that receives the kind of a request, its bytes and the source line that made it.
Note = Callable[[str, int, str], None]

# CuPy's functions that start one or more kernels, in addition to its ufuncs.
_FUNCTIONS = """all allclose amax amin any arange argmax argmin argsort array_equal average bincount
clip concatenate copyto count_nonzero cumprod cumsum diag dot einsum eye full full_like hstack inner
linspace max mean min ones ones_like outer prod put_along_axis repeat searchsorted sort stack std
sum take take_along_axis tensordot tile tril triu unique var vdot vstack where zeros
zeros_like""".split()
_METHODS = """all any argmax argmin argsort clip copy cumprod cumsum dot fill flatten max mean min
prod repeat scatter_add sort std sum take var""".split()
_OPERATORS = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
_METHODS += [f"__{more}{name}__" for name in _OPERATORS for more in ("", "r", "i")]
_METHODS += [f"__{name}__" for name in "abs eq ge gt invert le lt ne neg pos".split()]
# Functions that start a kernel only if they must make a copy.
_PERHAPS = "array asanyarray asarray ascontiguousarray asfortranarray".split()
# Functions and methods that make the host wait, because they copy a number or an array to it.
_WAITING_FUNCTIONS = "bincount nonzero unique".split()
_WAITING = """get item nonzero tobytes tolist __bool__ __complex__ __float__ __format__ __int__
__repr__ __str__""".split()
# Libraries whose lines are not reported; instead, the line that called them is reported.
_NOT_SHOWN = ("cupy", "cupy_backends", "cupyx", "numpy", "thinc")
_HERE = str(Path(__file__).parent)
_OURS = str(Path(__file__).parent.parent.parent)


@contextmanager
def noting(ops: Ops, note: Note) -> Iterator[None]:
    """Record the GPU requests of all threads in the block.

    Recorded are kernels of this library and of Thinc, matrix products, and CuPy's functions,
    operators and methods. Each counts as one kernel, although some start several. Not recorded are
    calls within CuPy's compiled code, ``Device.synchronize``, and copies through memory pointers.

    ops (Ops): Ops of a GPU.
    note (Note): Called for each request.
    """
    with ExitStack() as stack:
        _Calls(ops.xp, note, stack).replace_all()
        yield


class _Calls:
    def __init__(self, cupy: Any, note: Note, stack: ExitStack) -> None:
        self.cupy, self.stack, self._note = cupy, stack, note
        self._within = threading.local()

    def note(self, kind: str, n_bytes: int = 0) -> None:
        self._note(kind, n_bytes, _line())

    def replace_all(self) -> None:
        import cupyx

        cupy = self.cupy
        ufunc = getattr(cupy, "ufunc", ())
        names = {name for name, each in vars(cupy).items() if isinstance(each, ufunc)}
        for owner, functions, told in (
            (kernels, ["_start"], self.started),
            (cupy.cublas, ["gemm", "nrm2"], self.launched),
            (cupyx, ["scatter_add"], self.launched),
            (thinc.backends._custom_kernels.LazyKernel, ["__call__"], self.launched),
            (thinc.backends.cupy_ops, ["adam_kernel"], self.launched),
            (cupy, sorted(names | set(_FUNCTIONS) - set(_WAITING_FUNCTIONS)), self.launched),
            (cupy, _PERHAPS, self.perhaps_copied),
            (cupy, _WAITING_FUNCTIONS, self.launched_and_waited),
            (cupy.ndarray, _METHODS, self.launched),
            (cupy.ndarray, ["astype"], self.perhaps_copied),
            (cupy.ndarray, _WAITING, self.waited),
            (cupy.ndarray, ["set"], self.uploaded),
            (cupy.ndarray, ["__getitem__"], self.taken),
            (cupy.ndarray, ["__setitem__"], self.filled),
            (cupy.cuda.Stream, ["synchronize"], self.synchronized),
            (cupy.cuda.Event, ["synchronize"], self.synchronized),
            (cupy.cuda.runtime, ["deviceSynchronize"], self.synchronized),
        ):
            for name in functions:
                self.replace(owner, name, told)

    def replace(self, owner: Any, name: str, told: Callable[..., Any]) -> None:
        """Make a function report its calls, except calls within other reported ones.

        owner (Any): Module or class of the function.
        name (str): Name of the function.
        told (Callable): Called with the result and the arguments.
        """
        function = getattr(owner, name, None)
        if function is None:
            return
        telling = _Telling(function, told, self._within)
        before = vars(owner).get(name)
        try:
            setattr(owner, name, _method(telling) if isinstance(owner, type) else telling)
        except (AttributeError, TypeError):  # A compiled type cannot be changed.
            return
        if before is None:  # The attribute is inherited.
            self.stack.callback(delattr, owner, name)
        else:
            self.stack.callback(setattr, owner, name, before)

    def started(self, _: Any, name: str, n_blocks: int, *arguments: Any, **more: Any) -> None:
        if n_blocks:
            self.note(LAUNCH)

    def launched(self, result: Any, *given: Any, **more: Any) -> None:
        if getattr(result, "size", 1):
            self.note(LAUNCH)

    def perhaps_copied(self, result: Any, given: Any = None, *_: Any, **more: Any) -> None:
        if isinstance(given, self.cupy.ndarray):
            if result is not given and result.base is not given:
                self.launched(result)
        elif result.ndim and result.size:
            self.note(FROM_HOST, result.nbytes)
        else:  # A single number is written by a kernel.
            self.launched(result)

    def launched_and_waited(self, result: Any, *given: Any, **more: Any) -> None:
        self.note(LAUNCH)
        self.waited(result)

    def waited(self, result: Any, *given: Any, **more: Any) -> None:
        self.note(WAIT)
        known = getattr(result, "nbytes", None)
        self.note(TO_HOST, given[0].itemsize if known is None and given else known or 0)

    def synchronized(self, *_: Any, **more: Any) -> None:
        self.note(WAIT)

    def uploaded(self, result: Any, to: Any, array: Any, *_: Any, **more: Any) -> None:
        self.note(FROM_HOST, array.nbytes)

    def taken(self, result: Any, array: Any, key: Any) -> bool:
        """Record a read of array elements, and return whether it uses index arrays, which make a
        copy instead of a view."""
        places = [
            each
            for each in (key if isinstance(key, tuple) else (key,))
            if isinstance(each, (list, numpy.ndarray, self.cupy.ndarray))
        ]
        for each in places:
            if not isinstance(each, self.cupy.ndarray):
                self.note(FROM_HOST, numpy.asarray(each).nbytes)
            elif each.dtype == bool:
                self.waited(None, each)
        if places:
            self.note(LAUNCH)
        return bool(places)

    def filled(self, _: Any, array: Any, key: Any, value: Any) -> None:
        """Record a write to array elements. (After ``X[key] += value``, Python also assigns the
        elements to themselves, which starts no kernel.)"""
        if self.taken(None, array, key):
            return
        view = array[key]
        address = value.data.ptr if isinstance(value, self.cupy.ndarray) else None
        if view.size and view.data.ptr != address:
            self.note(LAUNCH)


class _Telling:
    """Wrap a function so that it reports its calls."""

    def __init__(self, function: Any, told: Callable[..., Any], within: Any) -> None:
        self._function, self._told, self._within = function, told, within

    def __call__(self, *given: Any, **more: Any) -> Any:
        if getattr(self._within, "is_told", False):
            return self._function(*given, **more)
        self._within.is_told = True
        try:
            result = self._function(*given, **more)
            self._told(result, *given, **more)
        finally:
            self._within.is_told = False
        return result

    def __getattr__(self, name: str) -> Any:  # For example the ``reduce`` of a ufunc.
        return getattr(self._function, name)


def _method(telling: _Telling) -> Callable[..., Any]:
    return lambda self, *given, **more: telling(self, *given, **more)


def _line() -> str:
    """Return the nearest line of the stack outside ``_NOT_SHOWN`` and this subpackage."""
    frame: Optional[Any] = sys._getframe(2)
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in _NOT_SHOWN and not file.startswith(_HERE):
            return f"{file.removeprefix(_OURS).lstrip('/')}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
