"""The state of an optimizer, in a form that can be saved and restored."""

from typing import Any, Dict, List, Mapping, Tuple

import numpy as np
from thinc.api import Optimizer, get_array_module, to_numpy

from ..errors import ModelError
from .scored_schedules import restore_schedules, schedule_states

SETTINGS = ("grad_clip", "learn_rate", "b1", "b2", "eps", "L2")
ARRAYS = ("mom1", "mom2", "averages")
COUNTS = ("nr_update", "last_seen")

# A parameter's key in an optimizer: (number of its node, its name).
Key = Tuple[int, str]
# For the optimizer, all weights of an agent are one parameter, whose state has this key.
KEY: Key = (0, "parameters")


def has_state(optimizer: Any) -> bool:
    """Return whether ``optimizer_state`` can return a state: for Thinc's optimizer, classes derived
    from it, and optimizers with their own ``state()`` and ``restore(state, arrays)``."""
    return isinstance(optimizer, Optimizer) or hasattr(optimizer, "state")


def arrays_of(optimizer: Any, key: Key) -> Dict[str, Any]:
    """Return the arrays that a Thinc optimizer has for a key so far, by their names in the
    optimizer."""
    known = {name: getattr(optimizer, name) or {} for name in ARRAYS}
    return {name: arrays[key] for name, arrays in known.items() if key in arrays}


def averages_of(optimizer: Any, weights: Any) -> Any:
    """Return the moving average of the weights, including all steps so far; None if the optimizer
    keeps no average, or has made no step.

    weights (Floats1d): The current weights.
    RETURNS (Optional[Floats1d]): As long as the weights.
    """
    if hasattr(optimizer, "current_average"):  # The average is not updated at each step.
        return optimizer.current_average(KEY, weights)
    averages = getattr(optimizer, "averages", None) or {}
    # Workers allocate the average before its first update; until then, it holds the initial
    # weights.
    if KEY not in averages or not optimizer.nr_update[KEY]:
        return None
    return averages[KEY]


def optimizer_state(optimizer: Any) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
    """Return the state of an optimizer.

    optimizer (Any): An optimizer that ``has_state``. A class derived from Thinc's that keeps
        more than Thinc's must define its own ``state``.
    RETURNS (Tuple[Dict[str, Any], Dict[str, np.ndarray]]): JSON values, and arrays by name; for
        ``restore_optimizer``.
    """
    if hasattr(optimizer, "state"):
        return optimizer.state()
    state: Dict[str, Any] = {
        "settings": {name: float(getattr(optimizer, name)) for name in SETTINGS}
    }
    for name in COUNTS:
        state[name] = [[list(key), int(n)] for key, n in getattr(optimizer, name).items()]
    state["schedules"] = schedule_states(optimizer)
    arrays: Dict[str, np.ndarray] = {}
    keys: List[List[Any]] = []
    for name in ARRAYS:
        for key, array in (getattr(optimizer, name) or {}).items():
            file = f"{name}-{key[0]}-{key[1]}"
            keys.append([name, list(key), file])
            arrays[file] = to_numpy(array)
    return {**state, "arrays": keys}, arrays


def restore_optimizer(
    optimizer: Any, weights: Any, state: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Give a new optimizer, built from the same settings, the state of another one, and advance its
    schedules by the same number of steps.

    weights (Floats1d): Weights on the device that the optimizer's arrays should be on.
    RAISES (ModelError): If the schedules return other values than in the saved state.
    """
    if hasattr(optimizer, "restore"):
        optimizer.restore(state, arrays)
        return
    for name in COUNTS:
        counts = getattr(optimizer, name)
        counts.clear()
        counts.update({_key(key): n for key, n in state[name]})
    xp = get_array_module(weights)
    for name, key, file in state["arrays"]:
        getattr(optimizer, name)[_key(key)] = xp.asarray(arrays[file])
    for _ in range(max(optimizer.nr_update.values(), default=0)):
        optimizer.step_schedules()
    restore_schedules(optimizer, state["schedules"])
    for name, value in state["settings"].items():
        current = float(getattr(optimizer, name))
        if current == value:
            continue  # Keep the schedule's own value, because its type affects rounding.
        if name in optimizer.schedules:
            raise ModelError(
                f"the optimizer's schedule of '{name}' is {current:g}, but was {value:g}: "
                "continue with the schedule that the run started with."
            )
        setattr(optimizer, name, value)


def _key(key: List[Any]) -> Key:
    return (int(key[0]), str(key[1]))
