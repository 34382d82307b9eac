"""An optimizer's state as arrays that several workers change together."""

import copy
from collections import defaultdict
from typing import Any, Dict, Mapping

import numpy
from thinc.api import Optimizer

from .row_sparse import Key, RowSparseOptimizer
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


def for_a_worker(optimizer: Optimizer) -> Optimizer:
    """An optimizer that changes the same arrays, and whose settings are given to it for
    each step (``set_step``): it has no schedules of its own."""
    twin = copy.copy(optimizer)
    twin.schedules = {}
    twin.nr_update = defaultdict(int)
    twin.last_seen = defaultdict(int)
    twin._radam_buffer = [[None, None, None] for _ in optimizer._radam_buffer]
    return twin


def step_settings(optimizer: Optimizer) -> Dict[str, float]:
    """What the next step is to be made with."""
    return {name: float(getattr(optimizer, name)) for name in SETTINGS}


def set_step(optimizer: Optimizer, key: Key, n_updates: int, settings: Mapping[str, float]) -> None:
    """Make the next step one of a run of several workers.

    n_updates (int): Steps before it, of all workers.
    settings (Mapping[str, float]): From ``step_settings``.
    """
    optimizer.nr_update[key] = n_updates
    for name, value in settings.items():
        setattr(optimizer, name, value)
