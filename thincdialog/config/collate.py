"""Let an agent use the collate function of its training data."""

from typing import Any, Dict, List

from ..contract import static_method
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
    """
    own, data = given.data["agent"], configs[-1]
    agent = function_of(data["agent"])
    if agent is None or "collate" not in agent.arguments or "collate" in own:
        return []
    trains = [task.get("train") for task in data["tasks"].values()]
    datasets = [function_of(train) for train in trains if is_block(train)]
    names = {each.name for each in datasets if each and static_method(each.function, "collate")}
    if hasattr(agent.function, "collate") or not names:
        return []
    if len(names) > 1:
        text = f"[agent] has no 'collate', and the data sets {sorted(names)} each have their own"
        hint = f'choose one: in [agent.collate], @collates = "{OF_DATASET}" and dataset = "NAME"'
        return [Problem(given.where("agent"), text, hint)]
    for config in configs:
        config["agent"]["collate"] = {"@collates": OF_DATASET, "dataset": min(names)}
    return []
