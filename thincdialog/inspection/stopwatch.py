"""Tells how long calls take, and how much of it is spent in other timed calls."""

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional

from thinc.api import Model


@dataclass
class Spent:
    """Time spent under one name.

    calls (int): How often.
    total (float): Seconds, with those of the timed calls inside.
    own (float): Seconds without them.
    """

    calls: int = 0
    total: float = 0.0
    own: float = 0.0


class Stopwatch:
    """Times calls that lie within each other.

    wait (Optional[Callable]): Waits until the device is done; None for the CPU.
    """

    def __init__(self, wait: Optional[Callable[[], None]] = None):
        self.spent: Dict[str, Spent] = {}
        self._wait = wait
        self._running: List[List[float]] = []  # Start, and time of calls inside.

    def time(self, name: str, function: Callable, *arguments: Any) -> Any:
        """Call a function; its time goes to a name."""
        if self._wait is not None:
            self._wait()
        here = [time.perf_counter(), 0.0]
        self._running.append(here)
        try:
            return function(*arguments)
        finally:
            if self._wait is not None:
                self._wait()
            seconds = time.perf_counter() - here[0]
            self._running.pop()
            if self._running:
                self._running[-1][1] += seconds
            spent = self.spent.setdefault(name, Spent())
            spent.calls += 1
            spent.total += seconds
            spent.own += seconds - here[1]

    @contextmanager
    def timing_nodes(self, model: Model, names: List[str]) -> Iterator[None]:
        """Time every node of a model for a while, in all places where it stands.

        names (List[str]): Of ``model.walk()``; backward passes go to "NAME backward".
        """
        with ExitStack() as stack:
            for node, name in zip(list(model.walk()), names):
                stack.callback(setattr, node, "_func", node._func)
                node._func = partial(self._forward, node._func, name)
            yield

    def _forward(self, function: Callable, name: str, model: Model, X: Any, is_train: bool) -> Any:
        Y, backprop = self.time(name, function, model, X, is_train)
        return Y, lambda dY: self.time(f"{name} backward", backprop, dY)

    @contextmanager
    def timing_method(self, owner: Any, method: str, name: str) -> Iterator[None]:
        """Time a method of one object for a while."""
        function = getattr(owner, method)

        def timed(*arguments: Any, **named: Any) -> Any:
            return self.time(name, lambda: function(*arguments, **named))

        setattr(owner, method, timed)
        try:
            yield
        finally:
            delattr(owner, method)
