"""Measure the time of calls, with and without the timed calls inside them."""

import time
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Dict, List
from unittest.mock import patch

from thinc.api import Model


@dataclass
class Spent:
    """Hold the time spent under one name.

    calls (int): Number of calls.
    total (float): Seconds, including timed calls inside.
    own (float): Seconds without timed calls inside.
    """

    calls: int = 0
    total: float = 0.0
    own: float = 0.0


class Stopwatch:
    """Time calls, which may be nested."""

    def __init__(self) -> None:
        self.spent: Dict[str, Spent] = {}
        # Start of each running call, and the time of calls inside it.
        self._running: List[List[float]] = []

    def time(self, name: str, function: Callable, *arguments: Any) -> Any:
        """Call a function, and add its time to that of a name."""
        here = [time.perf_counter(), 0.0]
        self._running.append(here)
        try:
            return function(*arguments)
        finally:
            seconds = time.perf_counter() - here[0]
            self._running.pop()
            if self._running:
                self._running[-1][1] += seconds
            spent = self.spent.setdefault(name, Spent())
            spent.calls += 1
            spent.total += seconds
            spent.own += max(0.0, seconds - here[1])

    def timing_nodes(self, model: Model, names: List[str]) -> ContextManager:
        """Time every node of a model in the block, wherever the node is used. The nodes themselves
        are not changed, because other code may depend on their functions.

        model (Model): The model.
        names (List[str]): Names of the nodes in ``model.walk()``; backward passes are timed as
            "NAME backward".
        """
        known = dict(zip(map(id, model.walk()), names))

        def call(node: Any, X: Any, is_train: bool) -> Any:
            name = known.get(id(node))
            if not name:
                return node._func(node, X, is_train)
            Y, backprop = self.time(name, node._func, node, X, is_train)
            return Y, lambda dY: self.time(f"{name} backward", backprop, dY)

        return patch.multiple(
            Model,
            __call__=call,
            begin_update=lambda node, X: call(node, X, True),
            predict=lambda node, X: call(node, X, False)[0],
        )

    def timing_method(self, owner: Any, method: str, name: str) -> ContextManager:
        """Time a method of one object in the block."""
        function = getattr(owner, method)

        def timed(*arguments: Any, **named: Any) -> Any:
            return self.time(name, lambda: function(*arguments, **named))

        return patch.object(owner, method, timed)
