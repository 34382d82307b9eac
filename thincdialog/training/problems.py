"""Checks of a config that builds, as far as possible before any data is read."""

from typing import Any, Iterator, List

from ..config.values import KeyPath
from ..contract import is_users
from ..errors import ConfigError, MissingPackageError, Problem
from ..metrics.macro_metric import MACRO
from ..optimizers.scored_schedules import scored_schedules
from .experiment import Experiment, missing_for_ops
from .selection import not_measured

# Schedules that are 0 from `total_steps` on, if `total_steps` is set; and one that is 0 only with
# some settings.
ENDS_AT_0 = (
    "thincdialog.WarmupLinear.v1", "thincdialog.WarmupInverseSqrt.v1", "warmup_linear.v1",
)  # fmt: skip
COSINE = "thincdialog.WarmupCosine.v1"


def check_training(experiment: Experiment) -> None:
    """Check that an experiment's agent can be trained, and that the files exist.

    RAISES (DialogError): If the agent cannot be trained, or a file is missing.
    """
    problems = find_problems(experiment)
    if problems:
        raise ConfigError(problems, experiment.checked.name)
    experiment.check_data()


def find_problems(experiment: Experiment) -> List[Problem]:
    """Return all problems that would end the training of the experiment with an error."""
    checked = experiment.checked
    problems = [
        Problem(
            checked.where("baselines", name),
            f"[baselines.{name}] has weights to train",
            "train it with a separate config, or choose an agent without weights",
        )
        for name, agent in experiment.baselines.items()
        if agent.learns
    ]
    at = checked.where("training", "optimizer")
    try:
        experiment.agent.check_optimizer(experiment.optimizer)
    except ConfigError as error:
        problems += [problem._replace(where=at) for problem in error.problems]
    # If there is no data at all, it may be given later.
    has_data = experiment.has_split("train")
    if has_data and scored_schedules(experiment.optimizer) and not experiment.has_split("dev"):
        text = "[training.optimizer] has a schedule that needs scores on dev data"
        hint = "give some, with --paths.dev FILE or dev_share, or choose another schedule"
        problems.append(Problem(at, f"{text}, but there is none", hint))
    if has_data and experiment.agent.needs_dev and not experiment.has_split("dev"):
        text = "[agent] chooses thresholds on dev data, but there is none"
        hint = "give some, with --paths.dev FILE or dev_share, or set threshold to a number"
        problems.append(Problem(checked.where("agent", "threshold"), text, hint))
    problems += _schedule_problems(experiment)
    problems += experiment.runner.problems(experiment)
    problems += _score_problems(experiment)
    problems += experiment.evaluation_problems()
    return problems


def missing_packages(experiment: Experiment) -> List[Problem]:
    """Return the packages that training needs and answering does not. Building the config does not
    detect them."""
    checked = experiment.checked
    problems = missing_for_ops(checked)
    try:
        experiment.agent.check_packages()
    except MissingPackageError as error:
        problems.append(Problem(checked.where("agent"), str(error)))
    return problems


def _schedule_problems(experiment: Experiment) -> Iterator[Problem]:
    """Return a problem for each schedule that reaches 0 before the last step, because the rest of
    the training would change nothing."""
    checked, most = experiment.checked, experiment.training["max_steps"]

    def find(path: KeyPath, section: Any) -> Iterator[Problem]:
        total = section.get("total_steps")
        if _ends_at_0(section) and total is not None and total < most:
            name = ".".join(path)
            yield Problem(
                checked.where(*path, "total_steps"),
                f"[{name}] total_steps = {total:,} is less than [training] max_steps = {most:,}: "
                f"after {total:,} steps the rate is 0, and training changes nothing",
                "write total_steps = ${training.max_steps}, or lower max_steps",
            )
        for key, value in section.items():
            if isinstance(value, dict):
                yield from find((*path, key), value)

    path = ("training", "optimizer")
    yield from find(path, checked.interpolated["training"]["optimizer"])


def _ends_at_0(section: Any) -> bool:
    """Return whether a section builds a schedule that is 0 from its ``total_steps`` on."""
    name = section.get("@schedules")
    return name in ENDS_AT_0 or (name == COSINE and section.get("final_share") == 0)


def _score_problems(experiment: Experiment) -> List[Problem]:
    """Return the problem of ``[training] score``, if its name is not among the metrics. Checked
    only if all names of metrics are known before the first example, as they are for built-in
    agents."""
    agent = experiment.agent
    if not (agent.learns and experiment.has_split("dev")):
        return []
    users = is_users(type(agent).report) or is_users(experiment.evaluation["world"])
    if agent.reported is None or users:
        return []
    names = {"examples", *agent.reported}
    for metric in experiment.metrics:
        names.update(metric.fresh().report())
    tasks = experiment.tasks
    if len(tasks) > 1:
        prefixes = [MACRO, *(name for name, task in tasks.items() if "dev" in task.splits)]
        names |= {f"{prefix}/{name}" for prefix in prefixes for name in names}
    score = experiment.training["score"]
    if score in names:
        return []
    at = experiment.checked.where("training", "score")
    return [not_measured(score, names)._replace(where=at)]
