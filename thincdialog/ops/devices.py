"""Placement of arrays: token ids, lengths and indices on the host, floats on the model's device."""

from contextlib import nullcontext
from functools import wraps
from typing import Any, Callable, ContextManager, Tuple, TypeVar, cast

import numpy
from thinc.api import Ops
from thinc.types import Ragged

# Integers on the host: a NumPy array. (Thinc's types do not say where an array is.)
HostInts = Any
Method = TypeVar("Method", bound=Callable[..., Any])
# In one copy of several arrays, each array begins at a multiple of this number of bytes.
_ALIGNMENT = 16


def on_host(array: Any) -> numpy.ndarray:
    """Return an array on the host: the array itself if it is a NumPy array, else a copy. A copy is
    needed if a layer of another library left the array on a device; the host waits for the copy."""
    if isinstance(array, numpy.ndarray):
        return array
    copied: numpy.ndarray = array.get()
    return copied


def host_tokens(X: Ragged) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Return token ids and segments, int32, shape (n_tokens, 2); and the number of tokens of each
    example, shape (n_examples,); both on the host."""
    return on_host(X.dataXd), on_host(X.lengths)


def no_gradient(X: Ragged) -> Ragged:
    """Return zeros as the gradient of ids. The array is new each time, because a layer may add to
    it in place."""
    return Ragged(numpy.zeros_like(on_host(X.dataXd)), X.lengths)  # type: ignore[arg-type]


def upload(ops: Ops, *arrays: Any) -> Tuple[Any, ...]:
    """Copy arrays from the host to the device of the ops, in one transfer. On the CPU, return them
    unchanged.

    arrays (np.ndarray): Arrays of any types and shapes.
    RETURNS (Tuple): As many arrays, views of one buffer.
    """
    if ops.xp is numpy:
        return arrays
    ends = numpy.cumsum([-(-each.nbytes // _ALIGNMENT) * _ALIGNMENT for each in arrays]).tolist()
    packed = numpy.zeros(max(ends[-1], _ALIGNMENT), dtype="u1")
    starts = [0, *ends[:-1]]
    for start, each in zip(starts, arrays):
        flat = numpy.ascontiguousarray(each).reshape(-1)
        packed[start : start + each.nbytes] = flat.view("u1")
    buffer: Any = ops.xp.asarray(packed)
    return tuple(
        buffer[start : start + each.nbytes].view(each.dtype).reshape(each.shape)
        for start, each in zip(starts, arrays)
    )


def on_device(ops: Ops) -> ContextManager[Any]:
    """Make the ops' device CuPy's current device in this thread, within a context."""
    if ops.xp is numpy:
        return nullcontext()
    return cast(ContextManager[Any], ops.xp.cuda.Device(ops.device_id))


def on_own_device(method: Method) -> Method:
    """Run a method on the device of the ops of its object's ``model``."""

    @wraps(method)
    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        with on_device(self.model.ops):
            return method(self, *arguments, **named)

    return cast(Method, called)


def copied_to(ops: Ops, array: Any) -> Any:
    """Return the array, or a copy if the array lies on another device than the ops'."""
    with on_device(ops) as device:
        return array if device is None or array.device == device else array.copy()
