"""Tells how long a GPU works for calls, and what they ask it for."""

import threading
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .device_calls import LAUNCH, WAIT
from .stopwatch import Spent, Stopwatch


class Asked(NamedTuple):
    """What a line of code asked a GPU for.

    kind (str): "launches", "waits", "from_host" or "to_host".
    line (str): FILE:LINE.
    """

    kind: str
    line: str


class _Call:
    """A call that is timed.

    within (Optional[_Call]): The one that made it.
    """

    __slots__ = ("name", "within", "first", "last", "launches")

    def __init__(self, name: str, within: "Optional[_Call]", first: Any) -> None:
        self.name, self.within, self.first, self.last, self.launches = name, within, first, None, 0


class DeviceWatch(Stopwatch):
    """A stopwatch of a GPU: its events stand around each call and are read when all is over, so
    that nobody waits in between.

    event (Callable): Records a new event.
    between (Callable): Seconds between two events.
    launches (Counter): Kernels by the name of the innermost call that started them.
    asked (Dict[Asked, float]): How often.
    n_bytes (Dict[str, float]): Of copies, by their kind.
    n_steps (int): All of them, also those that nothing is kept of.
    is_open (bool): Whether what this thread asks for belongs to a step.
    """

    def __init__(self, event: Callable[[], Any], between: Callable[[Any, Any], float]) -> None:
        super().__init__()
        self._event, self._between = event, between
        self._thread = threading.get_ident()
        # Two threads may note at once; and one within its own note, by what it lets go of.
        self._lock = threading.RLock()
        self.launches: Counter = Counter()
        self.asked: Dict[Asked, float] = defaultdict(float)
        self.n_bytes: Dict[str, float] = defaultdict(float)
        self._asked_elsewhere: Counter = Counter()
        self._bytes_elsewhere: Counter = Counter()
        self.n_steps = 0
        self.is_open = False
        self.forget()

    def forget(self) -> None:
        """What this thread has noted since the last ``keep``."""
        self._calls: List[_Call] = []
        self._inmost: Optional[_Call] = None
        self._noted: Counter = Counter()
        self._noted_bytes: Counter = Counter()

    @contextmanager
    def step(self) -> Iterator[None]:
        """A step: what was noted of one that was not kept is forgotten."""
        self.forget()
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False
        self.n_steps += 1

    def time(self, name: str, function: Callable, *arguments: Any) -> Any:
        if threading.get_ident() != self._thread:  # The host's work, for a later step.
            return function(*arguments)
        call = self._inmost = _Call(name, self._inmost, self._event())
        self._calls.append(call)
        try:
            return function(*arguments)
        finally:
            call.last, self._inmost = self._event(), call.within

    def note(self, kind: str, n_bytes: int, line: str) -> None:
        """Something is asked for; see ``device_calls``. What other threads ask for belongs to the
        steps, too, whenever they do, but nobody who trains waits with them."""
        asked = Asked(kind, line)
        if threading.get_ident() != self._thread:
            if kind != WAIT:
                with self._lock:
                    self._asked_elsewhere[asked] += 1
                    self._bytes_elsewhere[kind] += n_bytes
        elif self.is_open:
            self._noted[asked] += 1
            self._noted_bytes[kind] += n_bytes
            if kind == LAUNCH and self._inmost is not None:
                self._inmost.launches += 1

    def has_waited(self) -> bool:
        """Since the last ``keep``."""
        return any(asked.kind == WAIT for asked in self._noted)

    def keep(self) -> None:
        """Add up what was noted of a step; the device is done with it."""
        inside: Dict[int, float] = {}
        found: List[Tuple[_Call, float]] = []
        for call in self._calls:
            seconds = self._between(call.first, call.last)
            found.append((call, seconds))
            if call.within is not None:
                key = id(call.within)
                inside[key] = inside.get(key, 0.0) + seconds
        for call, seconds in found:
            spent = self.spent.setdefault(call.name, Spent())
            spent.calls += 1
            spent.total += seconds
            spent.own += max(0.0, seconds - inside.get(id(call), 0.0))
            self.launches[call.name] += call.launches
        self._add(self._noted, self._noted_bytes)
        self.forget()

    def keep_elsewhere(self, n: int) -> None:
        """Add up what other threads asked for in all steps, which nobody can tell whose it was.

        n (int): Steps that were kept.
        """
        if self.n_steps:
            with self._lock:
                self._add(self._asked_elsewhere, self._bytes_elsewhere, n / self.n_steps)

    def _add(self, asked: Counter, n_bytes: Counter, share: float = 1) -> None:
        for what, times in asked.items():
            self.asked[what] += times * share
        for kind, size in n_bytes.items():
            self.n_bytes[kind] += size * share
