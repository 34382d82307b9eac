"""Whole numbers of a batch (token ids, lengths, places) that lie on a device and are known to
the host, too, so that nobody waits for the device to tell them."""

import weakref
from contextlib import nullcontext
from functools import wraps
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Hashable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    cast,
)

import numpy
from thinc.api import Ops

# A function of host arrays and settings that gives further ones.
Derive = Callable[..., Tuple[numpy.ndarray, ...]]
Method = TypeVar("Method", bound=Callable[..., Any])
# Where an array comes from: (its place in ``put``,) or (function, arguments, place).
_Path = Tuple[Any, ...]
# Bytes at whose multiples arrays begin in the packed copy.
_ALIGNMENT = 16


def put(ops: Ops, role: Hashable, *arrays: numpy.ndarray) -> Tuple[Any, ...]:
    """Arrays of a batch on the device of the ops, in one copy, with all that was ``derived``
    of the last batch in this role.

    role (Hashable): What the batch is for; in each, as many arrays of the same meaning.
    arrays (np.ndarray): Not to be changed afterwards.
    RETURNS (Tuple): As many device arrays.
    """
    known = getattr(ops, "known_numbers", None)
    if known is None:
        asarray: Any = ops.asarray
        return tuple(map(asarray, arrays))
    # CuPy's current device is each thread's own: a batch may come from another one.
    ops.xp.cuda.Device(ops.device_id).use()
    return known.put(role, arrays)


def on_own_device(method: Method) -> Method:
    """A method of what has a ``model``, which computes on the device of its ops."""

    @wraps(method)
    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        with on_device(self.model.ops):
            return method(self, *arguments, **named)

    return cast(Method, called)


def on_device(ops: Ops) -> ContextManager[Any]:
    """A stretch in which the ops' device is CuPy's current one, which is each thread's own."""
    if getattr(ops, "known_numbers", None) is None:
        return nullcontext()
    return cast(ContextManager[Any], ops.xp.cuda.Device(ops.device_id))


def brought(ops: Ops, array: Any) -> Any:
    """An array, or a copy of it where it lies on another device than the ops'."""
    with on_device(ops) as device:
        return array if device is None or array.device == device else array.copy()


def on_host(ops: Ops, array: Any) -> numpy.ndarray:
    """An array as the host knows it; where it does not, it waits for a copy."""
    if isinstance(array, numpy.ndarray):
        return array
    known = getattr(ops, "known_numbers", None)
    found = None if known is None else known.find(array)
    return ops.to_numpy(array) if found is None else found.host


def derived(ops: Ops, function: Derive, *arguments: Any) -> Tuple[Any, ...]:
    """What a function makes of arrays: computed on the host, and put on the device.

    function (Callable): Of host arrays and settings, to a tuple of arrays; always the same for
        the same arguments.
    arguments (Any): Device arrays that are ``put`` or ``derived``, and hashable settings.
    """
    if ops.xp is numpy:
        return function(*arguments)
    known = getattr(ops, "known_numbers", None)
    if known is not None:
        return known.derive(ops, function, arguments)
    host = (on_host(ops, each) if hasattr(each, "dtype") else each for each in arguments)
    asarray: Any = ops.asarray
    return tuple(map(asarray, function(*host)))


class _Known(NamedTuple):
    """An array as the host knows it.

    number (int): Of the ``put`` that it belongs to; -1 if it is made of several.
    """

    host: numpy.ndarray
    number: int
    path: _Path


class KnownNumbers:
    """What ``put``, ``on_host`` and ``derived`` know of arrays on one device. What layers derive
    of a batch is noted, so that it is ready for the next one and comes in the same copy.

    xp (module): CuPy.
    stream (Callable[[int], SeedSequence]): The entropy of the batch's random draws, by number.
    """

    def __init__(self, xp: Any, stream: Callable[[int], Any]) -> None:
        self._xp, self._stream = xp, stream
        # By the id of a buffer: itself, and what lies in it by place and form.
        self._buffers: Dict[int, Tuple[Any, Dict[Any, _Known]]] = {}
        self._ready: Dict[_Path, Tuple[Any, ...]] = {}
        self._asked: Dict[Hashable, Dict[_Path, Derive]] = {}
        self._role: Hashable = None
        self._number = 0

    def put(self, role: Hashable, arrays: Sequence[numpy.ndarray]) -> Tuple[Any, ...]:
        """See the function of this name."""
        wanted = self._asked.get(role, {})
        self._buffers = {key: each for key, each in self._buffers.items() if each[0]() is not None}
        self._number += 1
        self._role, self._asked[role], self._ready = role, {}, {}
        paths: List[_Path] = [(place,) for place in range(len(arrays))]
        host = dict(zip(paths, arrays))
        results: Dict[_Path, List[_Path]] = {}
        for key, function in wanted.items():
            given = (host[e.path] if isinstance(e, _Of) else self._value(e) for e in key[1])
            found = function(*given)
            results[key] = [(*key, place) for place in range(len(found))]
            host.update(zip(results[key], found))
        of_batch = [_Known(array, self._number, path) for path, array in host.items()]
        device = dict(zip(host, self._copied(of_batch)))
        for key, places in results.items():
            self._ready[key] = tuple(device[place] for place in places)
        return tuple(device[path] for path in paths)

    def find(self, array: Any) -> Optional[_Known]:
        """What is known of a device array, if anything is."""
        buffer, known = self._buffers.get(id(array.base), (None, {}))
        if buffer is None or buffer() is not array.base:  # Another one has its id now.
            return None
        return known.get(_form(array)) if array.flags.c_contiguous else None

    def derive(self, ops: Ops, function: Derive, arguments: Sequence[Any]) -> Tuple[Any, ...]:
        """See ``derived``."""
        named, host, is_of_batch = [], [], True
        for each in arguments:
            if not hasattr(each, "dtype"):
                host.append(self._value(each))
                named.append(each)
                continue
            known = self.find(each)
            host.append(ops.to_numpy(each) if known is None else known.host)
            is_of_batch &= known is not None and known.number == self._number
            named.append(None if known is None else _Of(known.path))
        key = (function, tuple(named))
        made = self._ready.get(key) if is_of_batch else None
        if made is None:
            number = self._number if is_of_batch else -1
            arrays = function(*host)
            made = tuple(self._copied([_Known(a, number, (*key, n)) for n, a in enumerate(arrays)]))
        if is_of_batch:
            self._ready[key], self._asked[self._role][key] = made, function
        return made

    def _value(self, argument: Any) -> Any:
        if not isinstance(argument, Draws):
            return argument
        return numpy.random.Generator(numpy.random.SFC64(self._stream(argument.number)))

    def _copied(self, arrays: Sequence[_Known]) -> List[Any]:
        """Arrays on the device, in one copy: views of one buffer."""
        # An empty one has a place, too, by which it is known.
        sizes = [max(1, -(-each.host.nbytes // _ALIGNMENT)) * _ALIGNMENT for each in arrays]
        packed, start = numpy.zeros(max(1, sum(sizes)), dtype="u1"), 0
        spans: List[Tuple[int, int]] = []
        for (array, *_), size in zip(arrays, sizes):
            spans.append((start, start + array.nbytes))
            flat = numpy.ascontiguousarray(array).reshape(-1)
            packed[start : start + array.nbytes] = flat.view("u1")
            start += size
        buffer = self._xp.asarray(packed)
        views = [
            buffer[first:stop].view(each.host.dtype).reshape(each.host.shape)
            for (first, stop), each in zip(spans, arrays)
        ]
        known = {_form(view): each for view, each in zip(views, arrays)}
        self._buffers[id(buffer)] = (weakref.ref(buffer), known)
        return views


def _form(array: Any) -> Tuple[Any, ...]:
    return array.data.ptr, array.shape, array.dtype.char


class Draws(NamedTuple):
    """An argument of ``derived`` for which the function gets a random generator.

    number (int): Of the draws within a microbatch.
    """

    number: int


class _Of:
    """An argument that is an array, by its path."""

    __slots__ = ("path",)

    def __init__(self, path: _Path) -> None:
        self.path = path

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Of) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)
