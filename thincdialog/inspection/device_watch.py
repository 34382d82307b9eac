"""Measure how long a GPU works for each call, and count the requests of calls."""

import threading
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .device_calls import LAUNCH, WAIT
from .stopwatch import Stopwatch


class Asked(NamedTuple):
    """Name a kind of GPU request and the line of code that made it.

    kind (str): "launches", "waits", "from_host" or "to_host".
    line (str): FILE:LINE.
    """

    kind: str
    line: str


# A request and the bytes that it copies.
Noted = Tuple[Asked, int]


class _Call:
    """Hold a timed call.

    within (Optional[_Call]): The timed call around it, if any.
    inside (float): Seconds of the timed calls inside it.
    """

    __slots__ = ("name", "within", "first", "last", "launches", "inside")

    def __init__(self, name: str, within: "Optional[_Call]", first: Any) -> None:
        self.name, self.within, self.first, self.last = name, within, first, None
        self.launches, self.inside = 0, 0.0


class DeviceWatch(Stopwatch):
    """Time calls on a GPU. Events are recorded before and after each call and read at the end of
    the step, so that the host does not wait in between.

    event (Callable): Records a new event.
    between (Callable): Returns the seconds between two events.
    launches (Counter): Number of kernels by the name of the innermost call that started them.
    asked (Dict[Asked, float]): Number of requests of each kind and line.
    n_bytes (Dict[str, float]): Bytes of copies, by their kind.
    n_steps (int): Number of all steps, including those that were not kept.
    is_open (bool): Whether requests of this thread belong to a step.
    """

    def __init__(self, event: Callable[[], Any], between: Callable[[Any, Any], float]) -> None:
        super().__init__()
        self._event, self._between = event, between
        self._thread = threading.get_ident()
        self.launches: Counter = Counter()
        self.asked: Dict[Asked, float] = defaultdict(float)
        self.n_bytes: Dict[str, float] = defaultdict(float)
        # Requests of other threads. A list needs no lock: several threads may append to it.
        self._noted_elsewhere: List[Noted] = []
        self.n_steps = 0
        self.is_open = False
        self.forget()

    def forget(self) -> None:
        """Drop all records of this thread since the last ``keep()``."""
        self._calls: List[_Call] = []
        self._inmost: Optional[_Call] = None
        self._noted: List[Noted] = []

    @contextmanager
    def step(self) -> Iterator[None]:
        """Make a step in the block; drop earlier records that were not kept."""
        self.forget()
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False
        self.n_steps += 1

    def time(self, name: str, function: Callable, *arguments: Any) -> Any:
        if threading.get_ident() != self._thread:  # The host's work for a later step.
            return function(*arguments)
        call = self._inmost = _Call(name, self._inmost, self._event())
        self._calls.append(call)
        try:
            return function(*arguments)
        finally:
            call.last, self._inmost = self._event(), call.within

    def note(self, kind: str, n_bytes: int, line: str) -> None:
        """Record a request; see ``device_calls``. Requests of other threads also count at any time,
        except their waits, because the training thread does not wait with them."""
        asked = Asked(kind, line)
        if threading.get_ident() != self._thread:
            if kind != WAIT:
                self._noted_elsewhere.append((asked, n_bytes))
        elif self.is_open:
            self._noted.append((asked, n_bytes))
            if kind == LAUNCH and self._inmost is not None:
                self._inmost.launches += 1

    def has_waited(self) -> bool:
        """Return whether this thread has waited since the last ``keep()``."""
        return any(asked.kind == WAIT for asked, _ in self._noted)

    def keep(self) -> None:
        """Add up the records of a step, after the device has finished it."""
        # A call comes after the call around it, so the seconds inside it are known first.
        for call in reversed(self._calls):
            seconds = self._between(call.first, call.last)
            if call.within is not None:
                call.within.inside += seconds
            self._add_call(call.name, seconds, call.inside)
            self.launches[call.name] += call.launches
        self._add(self._noted)
        self.forget()

    def keep_elsewhere(self, n: int) -> None:
        """Add up requests of other threads, which cannot be assigned to a single step: count a
        fraction of them, in proportion to the kept steps.

        n (int): Number of kept steps.
        """
        if self.n_steps:
            self._add(self._noted_elsewhere, n / self.n_steps)

    def _add(self, noted: List[Noted], share: float = 1) -> None:
        for (asked, n_bytes), times in Counter(noted).items():
            self.asked[asked] += times * share
            self.n_bytes[asked.kind] += n_bytes * times * share
