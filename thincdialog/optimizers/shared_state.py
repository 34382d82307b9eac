"""An optimizer's state as arrays that several workers change together."""

import copy
from collections import defaultdict
from typing import Any, Dict, Mapping

import numpy
from thinc.api import Optimizer

from .lazy_adam import LazyAdam
from .row_sparse import Key, RowSparseOptimizer
from .shared_moments import SharedMoments
from .state import ARRAYS, SETTINGS


def lay_out_state(optimizer: Optimizer, key: Key, values: Any) -> Dict[str, Any]:
    """Make the arrays that the optimizer would make at its first steps, where they are not
    there yet.

    (An average of the weights begins with the weights as they are now; one worker alone
    begins it at its first average.)

    optimizer (Optimizer): Thinc's, or a ``RowSparseOptimizer``.
    key (Key): What the state lies under.
    values (Floats1d): All parameters, on the CPU.
    RETURNS (Dict[str, Any]): The arrays by the optimizer's names of them.
    """
    if isinstance(optimizer, RowSparseOptimizer):
        optimizer.state_arrays(key, values)
    elif optimizer.b2 > 0:
        for moments in (optimizer.mom1, optimizer.mom2):
            moments.setdefault(key, numpy.zeros_like(values))
    if optimizer.averages is not None:
        optimizer.averages.setdefault(key, values.copy())
    known = {name: getattr(optimizer, name) or {} for name in ARRAYS}
    return {name: arrays[key] for name, arrays in known.items() if key in arrays}


def use_state(optimizer: Optimizer, key: Key, arrays: Mapping[str, Any]) -> None:
    """Let the optimizer change these arrays from now on.

    arrays (Mapping[str, Any]): By the names that ``lay_out_state`` gave; others are none
        of its business.
    """
    for name in ARRAYS:
        if name in arrays:
            getattr(optimizer, name)[key] = arrays[name]


def has_known_steps(optimizer: Any) -> bool:
    """Whether workers can share all that an optimizer keeps. One that has steps or a state
    of its own, derived from Thinc's or not, may keep something that nobody here knows of."""
    if not isinstance(optimizer, Optimizer) or hasattr(optimizer, "state"):
        return False
    base = RowSparseOptimizer if isinstance(optimizer, RowSparseOptimizer) else Optimizer
    names = ("__call__", "_adam", "_radam")
    return all(getattr(type(optimizer), name) is getattr(base, name) for name in names)


def for_a_worker(optimizer: Optimizer) -> Optimizer:
    """An optimizer that changes the same arrays, and whose settings are given to it for
    each step (``set_step``): it has no schedules of its own.

    optimizer (Optimizer): One that ``has_known_steps``.
    """
    if isinstance(optimizer, RowSparseOptimizer):
        twin: Any = copy.copy(optimizer)
        twin.is_shared = True
    else:
        twin = SharedMoments(optimizer)
    twin.schedules = {}
    twin.nr_update = defaultdict(int)
    twin.last_seen = defaultdict(int)
    twin._radam_buffer = [[None, None, None] for _ in optimizer._radam_buffer]
    return twin


def set_step(optimizer: Optimizer, key: Key, n_updates: int, settings: Mapping[str, float]) -> None:
    """Make the next step one of a run of several workers.

    n_updates (int): Steps before it, of all workers.
    settings (Mapping[str, float]): From ``step_settings``.
    """
    optimizer.nr_update[key] = n_updates
    for name, value in settings.items():
        setattr(optimizer, name, value)


class StepsAhead:
    """Settings of steps that are handed out before those in front of them are made. Only
    between ``settle`` and the next ``settings`` is the optimizer itself where the steps are.

    optimizer (Optimizer): Owns the schedules.
    key (Key): What its state lies under.
    """

    def __init__(self, optimizer: Optimizer, key: Key):
        self.optimizer, self.key = optimizer, key
        self._n_made: int = optimizer.nr_update[key]
        self._last = self._n_made + 1  # The schedules are at this step.
        self._known = {self._last: self.now()}

    def now(self) -> Dict[str, float]:
        """The optimizer's settings as they are; of ``LazyAdam`` itself its `nu`, too. (One
        derived from it may have steps of its own, which know of none.)"""
        names = (*SETTINGS, "nu") if type(self.optimizer) is LazyAdam else SETTINGS
        return {name: float(getattr(self.optimizer, name)) for name in names}

    def settings(self, number: int) -> Dict[str, float]:
        """What to make a step with.

        number (int): Of the step, from 1; not made yet.
        """
        while self._last < number:
            # A schedule that has ended keeps the value that is there.
            self._set(self._known[self._last])
            self.optimizer.step_schedules()
            self._last += 1
            self._known[self._last] = self.now()
        return self._known[number]

    def made(self) -> Dict[str, float]:
        """One more was made; what is next in their order was to be made with this."""
        self.settings(self._n_made + 2)  # The schedules go on from what is known.
        self._n_made += 1
        return self._known.pop(self._n_made)

    def settle(self) -> None:
        """Bring the optimizer behind the steps that were made, as if there were no others."""
        self._set(self.settings(self._n_made + 1))
        self.optimizer.nr_update[self.key] = self._n_made

    def _set(self, settings: Mapping[str, float]) -> None:
        for name in self.optimizer.schedules:
            setattr(self.optimizer, name, settings[name])
