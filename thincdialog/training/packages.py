"""Packages that a config needs for training alone."""

from typing import List

from ..agents.compiled_steps import CompiledSteps
from ..config import CheckedConfig
from ..errors import ConfigError, MissingPackageError, Problem
from ..ops.choice import DialogOps, ops_to_train
from ..ops.compiled import load_kernels
from ..protocol import Agent


def training_ops(checked: CheckedConfig) -> DialogOps:
    """The ops that a config asks for.

    RAISES (ConfigError): If they need a package that is not installed.
    RAISES (DialogError): If a GPU is asked for and CuPy or the GPU is missing.
    """
    problems = _missing_for_ops(checked)
    if problems:
        raise ConfigError(problems, checked.name)
    return ops_to_train(checked.interpolated["system"])


def find_missing(checked: CheckedConfig, agent: Agent) -> List[Problem]:
    """The packages that training would miss, and answering would not: nothing that builds
    the config's parts finds them.

    agent (Agent): The config's.
    """
    problems = _missing_for_ops(checked)
    if isinstance(agent, CompiledSteps):
        try:
            agent.check_kernels()
        except MissingPackageError as error:
            problems.append(Problem(checked.where("agent"), str(error)))
    return problems


def _missing_for_ops(checked: CheckedConfig) -> List[Problem]:
    system = checked.interpolated["system"]
    if system["gpu_id"] >= 0 or system["ops"] != "fast":
        return []
    try:
        load_kernels("rows")
    except MissingPackageError:
        error = MissingPackageError("numba", "fast", '[system] ops = "fast"')
        where = checked.where("system", "ops")
        return [Problem(where, f'{error}, or set ops = "numpy"')]
    return []
