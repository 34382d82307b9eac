"""Let an agent use the collate function of its training data."""

import inspect
from typing import Any, Callable, Dict, List, Optional

from ..contract import CodeError, place_of
from ..errors import Problem
from .blocks import function_of, is_block
from .given import GivenConfig

OF_DATASET = "thincdialog.OfDataset.v1"


def add_collate(given: GivenConfig, *configs: Dict[str, Any]) -> List[Problem]:
    """Add ``[agent.collate]`` in place if the config leaves it out, the agent's class has no static
    method ``collate``, and the class of a task's training data has one. A saved model then names
    the function, and needs no data to find it.

    configs (Dict[str, Any]): The complete config without mistakes, the last with its variables
        filled in.
    RETURNS (List[Problem]): A problem if the tasks have several such functions.
    RAISES (CodeError): If a method ``collate`` of a data set lacks its ``@staticmethod``.
    """
    own, data = given.data["agent"], configs[-1]
    agent = function_of(data["agent"])
    if agent is None or "collate" not in agent.arguments or "collate" in own:
        return []
    if hasattr(agent.function, "collate"):
        return []
    trains = [task.get("train") for task in data["tasks"].values()]
    datasets = [function_of(train) for train in trains if is_block(train)]
    names = {each.name for each in datasets if each and collate_of(each.function)}
    if len(names) > 1:
        text = f"[agent] has no 'collate', and the data sets {sorted(names)} each have their own"
        hint = f'choose one: in [agent.collate], @collates = "{OF_DATASET}" and dataset = "NAME"'
        return [Problem(given.where("agent"), text, hint)]
    for config in configs if names else ():
        config["agent"]["collate"] = {"@collates": OF_DATASET, "dataset": min(names)}
    return []


def collate_of(dataset: Any) -> Optional[Callable]:
    """Return the static method ``collate(batch, tokens)`` of a data set's class; None if it has
    none. A method with other arguments, such as ``collate(self, rows)`` for PyTorch, is ignored,
    because it is not for an agent.

    RAISES (CodeError): If the method has these arguments and ``self``.
    """
    method: Any = getattr(dataset, "collate", None)
    if isinstance(inspect.getattr_static(dataset, "collate", None), staticmethod):
        return method
    if getattr(getattr(method, "__code__", None), "co_argcount", 0) == 3:
        raise CodeError(f"{place_of(method)} is called without self: make it a @staticmethod")
    return None
