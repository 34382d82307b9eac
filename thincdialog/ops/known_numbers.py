"""Whole numbers of a batch (token ids, lengths, places) that lie on a device and are known to
the host, too, so that nobody waits for the device to tell them."""

import weakref
from collections import deque
from contextlib import nullcontext
from functools import wraps
from itertools import count
from threading import local
from typing import (
    Any,
    Callable,
    ContextManager,
    Deque,
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

from .copies_ahead import CopiesAhead

# What random draws follow from: seed, step and microbatch.
Stream = Tuple[int, int, int]
# A function of host arrays and settings that gives further ones.
Derive = Callable[..., Tuple[numpy.ndarray, ...]]
Method = TypeVar("Method", bound=Callable[..., Any])
# Where an array comes from: (its place in ``put``,) or (function, arguments, place).
_Path = Tuple[Any, ...]
# Bytes at whose multiples arrays begin in the packed copy.
_ALIGNMENT = 16
# Batches of a step that are known beside the newest one.
MOST_BEFORE = 64


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


class OnHost(NamedTuple):
    """What the host knows of a copy to the device.

    number (int): Of the copy.
    arrays (Dict): What was copied, by where it comes from.
    """

    number: int
    arrays: Dict[_Path, numpy.ndarray]


class Packed(NamedTuple):
    """Arrays of a batch that were sent to a device in one copy, with all that was derived of them.

    on_host (OnHost): All of it, as the host knows it.
    arrays (Tuple): Those that were given.
    ready (Dict): What was derived, by what it comes from.
    buffer (Any): What they are views of; ``known`` is what lies in it.
    copied (Any): The event to wait for before they are read; None if they can be read.
    before (Tuple[int, ...]): Numbers of the copies that were to be used before, the newest first:
        some of what is ready was derived of these, too.
    """

    role: Hashable
    on_host: OnHost
    arrays: Tuple[Any, ...]
    ready: Dict[_Path, Tuple[Any, ...]]
    buffer: Any
    known: Dict[Any, _Known]
    copied: Any
    before: Tuple[int, ...]


class KnownNumbers(local):
    """What ``put``, ``on_host`` and ``derived`` know of arrays on one device. What layers derive
    of a batch is noted, so that it is ready for the next one and comes in the same copy. Each
    thread has its own notes, so several threads can answer with one model at the same time.

    xp (module): CuPy.
    stream (Callable[[], Stream]): Gives what the batch's random draws follow from.
    """

    # Of the copies; all threads count together, as one thread may use what another one packed.
    _numbers = count(1)

    def __init__(self, xp: Any, stream: Callable[[], Stream]) -> None:
        self._xp, self._stream = xp, stream
        # By the id of a buffer: itself, and what lies in it by place and form.
        self._buffers: Dict[int, Tuple[Any, Dict[Any, _Known]]] = {}
        self._ready: Dict[_Path, Tuple[Any, ...]] = {}
        self._asked: Dict[Hashable, Dict[_Path, Derive]] = {}
        self._role: Hashable = None
        # Of the copies in use: the newest first.
        self._used: Deque[int] = deque(maxlen=1 + MOST_BEFORE)

    def put(self, role: Hashable, arrays: Sequence[numpy.ndarray]) -> Tuple[Any, ...]:
        """See the function of this name."""
        return self.use(self.pack(role, arrays, self._asked, self._stream()))

    def asked(self) -> Dict[Hashable, Dict[_Path, Derive]]:
        """What is derived of batches in each role, by the last ones."""
        return {role: dict(of_role) for role, of_role in self._asked.items()}

    def pack(
        self,
        role: Hashable,
        arrays: Sequence[numpy.ndarray],
        asked: Dict[Hashable, Dict[_Path, Derive]],
        stream: Stream,
        copies: Optional[CopiesAhead] = None,
        before: Sequence[OnHost] = (),
    ) -> Packed:
        """Arrays of a batch to be ``put`` later, on their way to the device; another thread may
        call it.

        asked (Dict): See the method of this name.
        copies (Optional[CopiesAhead]): What copies them beside the device's work, if they shall be.
        before (Sequence[OnHost]): What will be used just before, the newest first.
        """
        paths: List[_Path] = [(place,) for place in range(len(arrays))]
        host = dict(zip(paths, arrays))
        results: Dict[_Path, List[_Path]] = {}
        hosts = [host, *(each.arrays for each in before)]
        for key, function in asked.get(role, {}).items():
            if not all(each.is_in(hosts) for each in key[1] if isinstance(each, _Of)):
                continue
            given = (e.found(hosts) if isinstance(e, _Of) else _value(e, stream) for e in key[1])
            found = function(*given)
            results[key] = [(*key, place) for place in range(len(found))]
            host.update(zip(results[key], found))
        number = next(self._numbers)
        of_batch = [_Known(array, number, path) for path, array in host.items()]
        buffer, views, known, copied = self._copied(of_batch, copies)
        device = dict(zip(host, views))
        ready = {key: tuple(map(device.__getitem__, places)) for key, places in results.items()}
        given_arrays = tuple(map(device.__getitem__, paths))
        numbers = tuple(each.number for each in before)
        own = OnHost(number, host)
        return Packed(role, own, given_arrays, ready, buffer, known, copied, numbers)

    def use(self, packed: Packed) -> Tuple[Any, ...]:
        """Go on to a batch that is packed.

        RETURNS (Tuple): The arrays that were given, on the device.
        """
        if packed.copied is not None:
            self._xp.cuda.get_current_stream().wait_event(packed.copied)
        self._buffers = {key: each for key, each in self._buffers.items() if each[0]() is not None}
        self._buffers[id(packed.buffer)] = weakref.ref(packed.buffer), packed.known
        self._role, self._ready = packed.role, packed.ready
        if packed.before != tuple(self._used)[: len(packed.before)]:
            self._ready = {key: each for key, each in self._ready.items() if not _looks_back(key)}
        self._used.appendleft(packed.on_host.number)
        self._asked[packed.role] = {}
        return packed.arrays

    def find(self, array: Any) -> Optional[_Known]:
        """What is known of a device array, if anything is."""
        buffer, known = self._buffers.get(id(array.base), (None, {}))
        if buffer is None or buffer() is not array.base:  # Another one has its id now.
            return None
        return known.get(_form(array)) if array.flags.c_contiguous else None

    def derive(self, ops: Ops, function: Derive, arguments: Sequence[Any]) -> Tuple[Any, ...]:
        """See ``derived``."""
        named: List[Any] = []
        given: List[Tuple[Any, Optional[_Known]]] = []
        is_of_batch = True
        for each in arguments:
            name, known = each, None
            if hasattr(each, "dtype"):
                known = self.find(each)
                name = None
                if known is None or known.number not in self._used:
                    is_of_batch = False
                else:
                    name = _Of(known.path, self._used.index(known.number))
            named.append(name)
            given.append((each, known))
        key = (function, tuple(named))
        made = self._ready.get(key) if is_of_batch else None
        if made is None:
            number = self._used[0] if is_of_batch and self._used else -1
            arrays = function(*(self._host(ops, *each) for each in given))
            of_key = [_Known(array, number, (*key, n)) for n, array in enumerate(arrays)]
            buffer, views, found, _ = self._copied(of_key)
            self._buffers[id(buffer)] = weakref.ref(buffer), found
            made = tuple(views)
        if is_of_batch:
            self._ready[key], self._asked[self._role][key] = made, function
        return made

    def _host(self, ops: Ops, argument: Any, known: Optional[_Known]) -> Any:
        """An argument as a function gets it."""
        if known is not None:
            return known.host
        if hasattr(argument, "dtype"):
            return ops.to_numpy(argument)
        return _value(argument, self._stream())

    def _copied(
        self, arrays: Sequence[_Known], copies: Optional[CopiesAhead] = None
    ) -> Tuple[Any, List[Any], Dict[Any, _Known], Any]:
        """Arrays on the device, in one copy.

        RETURNS (Tuple): A buffer, the arrays as views of it, what lies in it, and the event to
            wait for, if there is one.
        """
        # An empty one has a place, too, by which it is known.
        sizes = [max(1, -(-each.host.nbytes // _ALIGNMENT)) * _ALIGNMENT for each in arrays]
        n_bytes, start = max(_ALIGNMENT, sum(sizes)), 0
        room = None if copies is None else copies.room(n_bytes)
        packed = numpy.empty(n_bytes, dtype="u1") if room is None else room.host
        spans: List[Tuple[int, int]] = []
        for (array, *_), size in zip(arrays, sizes):
            spans.append((start, start + array.nbytes))
            flat = numpy.ascontiguousarray(array).reshape(-1)
            packed[start : start + array.nbytes] = flat.view("u1")
            start += size
        copied: Any = None
        if copies is None or room is None:
            buffer = self._xp.asarray(packed)
        else:
            buffer, copied = copies.send(room)
        views = [
            buffer[first:stop].view(each.host.dtype).reshape(each.host.shape)
            for (first, stop), each in zip(spans, arrays)
        ]
        return buffer, views, {_form(view): each for view, each in zip(views, arrays)}, copied


def _form(array: Any) -> Tuple[Any, ...]:
    return array.data.ptr, array.shape, array.dtype.char


class Draws(NamedTuple):
    """An argument of ``derived`` for which the function gets a random generator.

    number (int): Of the draws within a microbatch.
    """

    number: int


def _looks_back(key: _Path) -> bool:
    """Whether something was derived of an earlier batch, too."""
    return any(
        each.back or _looks_back(each.path)
        for part in key
        if isinstance(part, tuple)
        for each in part
        if isinstance(each, _Of)
    )


def _value(argument: Any, stream: Stream) -> Any:
    """An argument that is no array, for the function."""
    if not isinstance(argument, Draws):
        return argument
    seeds = numpy.random.SeedSequence((*stream, argument.number))
    return numpy.random.Generator(numpy.random.SFC64(seeds))


class _Of:
    """An argument that is an array, by its path in the ``put`` so many before the newest one."""

    __slots__ = ("path", "back", "_hash")

    def __init__(self, path: _Path, back: int) -> None:
        # Paths hold others, and are looked for at each call of a layer.
        self.path, self.back, self._hash = path, back, hash((path, back))

    def is_in(self, hosts: Sequence[Dict[_Path, numpy.ndarray]]) -> bool:
        """Whether it is known, given what is known of each ``put``, the newest first."""
        return self.back < len(hosts) and self.path in hosts[self.back]

    def found(self, hosts: Sequence[Dict[_Path, numpy.ndarray]]) -> numpy.ndarray:
        """The array, if it is."""
        return hosts[self.back][self.path]

    def __eq__(self, other: Any) -> bool:
        is_equal = isinstance(other, _Of) and self._hash == other._hash
        return is_equal and self.back == other.back and self.path == other.path

    def __hash__(self) -> int:
        return self._hash
