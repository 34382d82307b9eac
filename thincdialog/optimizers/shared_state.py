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
    return arrays_of(optimizer, key)


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
    of its own, derived from Thinc's or not, may keep something that is not known here."""
    if not isinstance(optimizer, Optimizer) or hasattr(optimizer, "state"):
        return False
    base = RowSparseOptimizer if isinstance(optimizer, RowSparseOptimizer) else Optimizer
    names = ("__call__", "_adam", "_radam")
    return all(getattr(type(optimizer), name) is getattr(base, name) for name in names)


def why_not_shared(optimizer: Any) -> str:
    """Why several workers cannot make steps with an optimizer; "" if they can."""
    if not has_known_steps(optimizer):
        return "is none of Thinc's, whose state workers can share"
    return "is RAdam, whose steps go wrong if several workers make them" * optimizer.use_radam


def for_a_worker(optimizer: Optimizer, ops: Ops) -> Optimizer:
    """An optimizer that changes the same arrays, and whose settings are given to it for
    each step (``set_step``): it has no schedules of its own.

    optimizer (Optimizer): One that ``has_known_steps``.
    ops (Ops): The model's, on the CPU.
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
    """The settings of an optimizer at each step, as a worker alone would have them.

    schedules (Optimizer): A new one, built from the config, whose schedules nothing else steps.
    now (Mapping[str, float]): From ``settings_of`` the run's: those without a schedule count.
    """

    def __init__(self, schedules: Optimizer, now: Mapping[str, float]):
        self._schedules, self._last = schedules, 1
        known = schedules.schedules
        self._fixed = {name: value for name, value in now.items() if name not in known}

    def at(self, number: int) -> Dict[str, float]:
        """What to make a step with.

        number (int): Of the step, from 1. Schedules only move forward: of an earlier one than the
            last that was asked for, it is what that had.
        """
        while self._last < number:
            self._schedules.step_schedules()
            self._last += 1
        return {**settings_of(self._schedules), **self._fixed}

    def restore_schedules(self, states: Mapping[str, Any]) -> None:
        """Continue as those of the run's optimizer, whose ``schedule_states`` these are."""
        restore_schedules(self._schedules, states)


def settings_of(optimizer: Optimizer) -> Dict[str, float]:
    """The settings of an optimizer as they are; of ``LazyAdam`` itself its `nu`, too. (One
    derived from it may have steps of its own, which know of none.)"""
    names = (*SETTINGS, "nu") if type(optimizer) is LazyAdam else SETTINGS
    return {name: float(getattr(optimizer, name)) for name in names}
