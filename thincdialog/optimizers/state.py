"""What an optimizer knows besides its settings, to be saved and taken back."""

from typing import Any, Dict, List, Mapping, Tuple

import numpy as np
from thinc.api import Ops, Optimizer

from ..errors import ModelError, ProtocolError

SETTINGS = ("grad_clip", "learn_rate", "b1", "b2", "eps", "L2")
ARRAYS = ("mom1", "mom2", "averages")
COUNTS = ("nr_update", "last_seen")

# A parameter's key in an optimizer: (number of its node, its name).
Key = Tuple[int, str]


def optimizer_state(optimizer: Any, ops: Ops) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
    """All that is known of Thinc's optimizer, or of one derived from it.

    ops (Ops): Of the device that its arrays are on.
    RETURNS (Tuple[Dict[str, Any], Dict[str, np.ndarray]]): JSON values, and arrays by
        name; for ``restore_optimizer``.
    RAISES (ProtocolError): If it is of another kind.
    """
    if not isinstance(optimizer, Optimizer):
        kind = type(optimizer).__name__
        raise ProtocolError(f"the optimizer is a {kind}, whose state cannot be saved.")
    state: Dict[str, Any] = {
        "settings": {name: float(getattr(optimizer, name)) for name in SETTINGS}
    }
    for name in COUNTS:
        state[name] = [[list(key), int(n)] for key, n in getattr(optimizer, name).items()]
    arrays: Dict[str, np.ndarray] = {}
    keys: List[List[Any]] = []
    for name in ARRAYS:
        for key, array in (getattr(optimizer, name) or {}).items():
            file = f"{name}-{key[0]}-{key[1]}"
            keys.append([name, list(key), file])
            arrays[file] = ops.to_numpy(array)
    return {**state, "arrays": keys}, arrays


def restore_optimizer(
    optimizer: Any, ops: Ops, state: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Give a new optimizer, built from the same settings, the state of another one. Its
    schedules are stepped as often as those were.

    RAISES (ModelError): If they give other values than they gave then.
    """
    for name in COUNTS:
        counts = getattr(optimizer, name)
        counts.clear()
        counts.update({_key(key): n for key, n in state[name]})
    for name, key, file in state["arrays"]:
        getattr(optimizer, name)[_key(key)] = ops.asarray(arrays[file])
    for _ in range(max(optimizer.nr_update.values(), default=0)):
        optimizer.step_schedules()
    for name, value in state["settings"].items():
        current = float(getattr(optimizer, name))
        if current == value:
            continue  # Its type decides on roundings: it stays as the schedule gave it.
        if name in optimizer.schedules:
            raise ModelError(
                f"the optimizer's schedule of '{name}' gives {current:g} where it gave {value:g}: "
                "go on with the schedule that the run began with."
            )
        setattr(optimizer, name, value)


def _key(key: List[Any]) -> Key:
    return (int(key[0]), str(key[1]))
