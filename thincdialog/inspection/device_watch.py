"""Tells how long a GPU works for calls, and what they ask it for."""

import threading
from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

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
    launches (Counter): Kernels by the name of the innermost call that started them; "" for none.
    asked (Counter): How often, by ``Asked``.
    n_bytes (Counter): Of copies, by their kind.
    is_open (bool): Whether what this thread asks for belongs to a step.
    """

    def __init__(self, event: Callable[[], Any], between: Callable[[Any, Any], float]) -> None:
        super().__init__()
        self._event, self._between = event, between
        self._thread = threading.get_ident()
        self.launches: Counter = Counter()
        self.asked: Counter = Counter()
        self.n_bytes: Counter = Counter()
        self.is_open = False
        self.forget()

    def forget(self) -> None:
        """What was noted since the last ``keep``."""
        self._calls: List[_Call] = []
        self._inmost: Optional[_Call] = None
        self._noted: Counter = Counter()
        self._noted_bytes: Counter = Counter()
        self._elsewhere = 0

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
        is_here = threading.get_ident() == self._thread
        if not (self.is_open if is_here else kind != WAIT):
            return
        self._noted[Asked(kind, line)] += 1
        self._noted_bytes[kind] += n_bytes
        if kind == LAUNCH:
            if self._inmost is None or not is_here:
                self._elsewhere += 1
            else:
                self._inmost.launches += 1

    def has_waited(self) -> bool:
        """Since the last ``keep``."""
        return any(asked.kind == WAIT for asked in self._noted)

    def keep(self) -> None:
        """Add up what was noted since; the device is done with it."""
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
        self.launches[""] += self._elsewhere
        self.asked.update(self._noted)
        self.n_bytes.update(self._noted_bytes)
        self.forget()
