"""Whether a config goes with several workers."""

import os
from typing import Any, Mapping

from ..config import CheckedConfig
from ..errors import ConfigError, Problem
from ..optimizers.shared_state import has_known_steps


def check_hogwild(checked: CheckedConfig, parts: Mapping[str, Any]) -> bool:
    """Whether a config asks for several workers.

    checked (CheckedConfig): The config that ``parts`` were built from.
    parts (Mapping[str, Any]): From ``resolve_config``.
    RAISES (ConfigError): If it does, and something in it does not go with that.
    """
    if parts["hogwild"]["workers"] < 2:
        return False
    problems = []
    if parts["system"]["gpu_id"] >= 0:
        text = "[hogwild] workers share memory of the CPU, but gpu_id asks for a GPU"
        hint = "set workers = 0, or --gpu-id -1"
        problems.append(Problem(checked.where("hogwild", "workers"), text, hint))
    if not has_known_steps(parts["training"]["optimizer"]):
        text = "[training.optimizer] is none of Thinc's, whose state [hogwild] workers can share"
        hint = "set workers = 0, or choose another optimizer"
        where = checked.where("training", "optimizer")
        problems.append(Problem(where, text, hint))
    is_process = parts["hogwild"]["executor"] == "process"
    for name, task in parts["tasks"].items():
        is_read_by_all = is_process or checked.interpolated["tasks"][name].get("streaming")
        paths = task.files("train") if "train" in task.splits else []
        pipes = [path for path in paths if os.path.exists(path) and not os.path.isfile(path)]
        if is_read_by_all and pipes:
            text = f"{pipes[0]} is no file, and each of the [hogwild] workers reads it for itself"
            hint = 'give a file, or set executor = "thread" and streaming = false'
            where = checked.where("tasks", name, "train")
            problems.append(Problem(where, text, hint))
    if problems:
        raise ConfigError(problems, checked.name)
    return True
