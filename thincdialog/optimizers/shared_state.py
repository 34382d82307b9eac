"""An optimizer's state as arrays that several workers change together."""

import copy
from collections import defaultdict
from typing import Any, Dict, Mapping

import numpy
from thinc.api import Ops, Optimizer

from .adam import AdamByOps
from .lazy_adam import LazyAdam
from .row_sparse import Key, RowSparseOptimizer
from .scored_schedules import restore_schedules
from .state import ARRAYS, SETTINGS, arrays_of


def lay_out_state(optimizer: Optimizer, key: Key, values: Any) -> Dict[str, Any]:
    """Create the arrays that the optimizer would create in its first steps, unless they exist.

    (An average of the weights starts with the current weights, while a single process starts it at
    its first update.)

    optimizer (Optimizer): A Thinc optimizer, or a ``RowSparseOptimizer``.
    key (Key): Key of the state.
    values (Floats1d): All parameters, on the CPU.
    RETURNS (Dict[str, Any]): The arrays by their names in the optimizer.
    """
    if isinstance(optimizer, RowSparseOptimizer):
        optimizer.state_arrays(key, values)
    elif optimizer.b2 > 0:
        for moments in (optimizer.mom1, optimizer.mom2):
            moments.setdefault(key, numpy.zeros_like(values))
    if optimizer.averages is not None:
        optimizer.averages.setdefault(key, values.copy())
    return arrays_of(optimizer, key)


def use_state(optimizer: Optimizer, key: Key, arrays: Mapping[str, Any]) -> None:
    """Make the optimizer change these arrays from now on.

    arrays (Mapping[str, Any]): Arrays by the names from ``lay_out_state``; other names are ignored.
    """
    for name in ARRAYS:
        if name in arrays:
            getattr(optimizer, name)[key] = arrays[name]


def has_known_steps(optimizer: Any) -> bool:
    """Return whether workers can share the whole state of an optimizer. An optimizer that defines
    its own steps or state, derived from Thinc's or not, may keep a state that is not known here."""
    if not isinstance(optimizer, Optimizer) or hasattr(optimizer, "state"):
        return False
    base = RowSparseOptimizer if isinstance(optimizer, RowSparseOptimizer) else Optimizer
    names = ("__call__", "_adam", "_radam")
    return all(getattr(type(optimizer), name) is getattr(base, name) for name in names)


def why_not_shared(optimizer: Any) -> str:
    """Return the reason why several workers cannot use an optimizer; "" if they can."""
    if not has_known_steps(optimizer):
        return "is a custom optimizer, whose state workers cannot share"
    return "is RAdam, whose steps are wrong if several workers make them" * optimizer.use_radam


def for_a_worker(optimizer: Optimizer, ops: Ops) -> Optimizer:
    """Return an optimizer that changes the same arrays, and gets its settings for each step
    (``set_step``), because it has no schedules.

    optimizer (Optimizer): An optimizer that ``has_known_steps``.
    ops (Ops): Ops of the model, on the CPU.
    """
    if isinstance(optimizer, RowSparseOptimizer):
        twin: Any = copy.copy(optimizer)
        twin.is_shared = True
    else:
        twin = AdamByOps(optimizer, ops, is_shared=True)
    twin.schedules = {}
    twin.nr_update = defaultdict(int)
    twin.last_seen = defaultdict(int)
    return twin


class StepSettings:
    """Compute the settings of an optimizer at each step, as a single process would have them.

    schedules (Optimizer): A new optimizer, built from the config, whose schedules only this object
        advances.
    now (Mapping[str, float]): Result of ``settings_of`` for the run's optimizer; used for settings
        without a schedule.
    """

    def __init__(self, schedules: Optimizer, now: Mapping[str, float]):
        self._schedules, self._last = schedules, 1
        known = schedules.schedules
        self._fixed = {name: value for name, value in now.items() if name not in known}

    def at(self, number: int) -> Dict[str, float]:
        """Return the settings for a step.

        number (int): Number of the step, from 1. Schedules only move forward, so for an earlier
            step than the last one asked for, the settings are those of that last step.
        """
        while self._last < number:
            self._schedules.step_schedules()
            self._last += 1
        return {**settings_of(self._schedules), **self._fixed}

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Restore the schedules from the ``schedule_states`` of the run's optimizer."""
        restore_schedules(self._schedules, states)


def settings_of(optimizer: Optimizer) -> Dict[str, float]:
    """Return the current settings of an optimizer, including `nu` if it is a ``LazyAdam`` itself.
    (A class derived from it may define steps without `nu`.)"""
    names = (*SETTINGS, "nu") if type(optimizer) is LazyAdam else SETTINGS
    return {name: float(getattr(optimizer, name)) for name in names}
