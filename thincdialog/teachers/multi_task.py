"""A teacher that mixes several tasks by weights."""

import math
from fractions import Fraction
from typing import Any, Dict, List, Mapping, Optional, Sequence, get_args

from ..errors import ConfigError, Problem, ProtocolError
from ..examples.mixture import Mixture
from ..examples.order import Order
from ..examples.store import Unit
from ..formats.wording import nearest
from ..messages import Message
from ..metrics.macro_metric import MACRO
from .scores import Scores
from .teacher import Teacher


class MultiTask(Teacher):
    """Mix several tasks into one teacher, which any world can use.

    The task of each episode is chosen separately, also within dynamic batches. At any time, each
    task has therefore had its share of the examples (or of another ``unit``), to within one
    episode. Ids begin with `<task>/`; the rest of a message is unchanged.

    Without ``repeat``, every example is shown once per epoch: a task that is exhausted is dropped,
    and the others continue in proportion. With ``repeat``, an exhausted task is shown again, in
    another order, until every task was shown completely. Endless tasks (see ``Teacher``) do not
    keep an epoch from ending, and continue at their positions in the next epoch.

    The report has each metric for all examples together, for each task (`<task>/f1`),
    and as the mean over the tasks (`macro/f1`). It also has the loss of each task, if replies have
    a loss (see ``Agent``).

    tasks (Mapping[str, Teacher]): Task name to a teacher that shows a split. Each teacher keeps
        its own position and scores, for the evaluation of one task at a time.
    weights (Optional[Sequence[int]]): Weights of the tasks in their order, 1 or more each. If None,
        the sizes of the tasks, so that all end together; or equal weights if the size of a stream
        is not known.
    unit (Unit): Unit that the weights count: "episodes", "examples", or "words" of all texts
        and labels, split at white space.
    repeat (bool): Whether to repeat a task until all tasks were shown completely.
    """

    def __init__(
        self,
        tasks: Mapping[str, Teacher],
        *,
        weights: Optional[Sequence[int]] = None,
        unit: Unit = "examples",
        repeat: bool = False,
    ):
        super().__init__({})
        self.tasks = dict(tasks)
        self.id = "+".join(tasks)
        first = next(iter(tasks.values()))
        self.split, self.training = first.split, first.training
        if any(task.training != self.training for task in tasks.values()):
            raise ValueError("tasks for training cannot be mixed with tasks for evaluation")
        orders: Dict[str, Order] = {}
        for name, task in tasks.items():
            order = task.order
            if not isinstance(order, Order):
                raise ValueError(f"the task '{name}' is a mixture itself: mix all tasks at once")
            orders[name] = order
        self._show(Mixture(orders, weights, unit, repeat), Scores(list(tasks), self.training))

    def task_of(self, message: Message) -> str:
        """Return the name of the task that a message belongs to."""
        return str(message.get("id")).partition("/")[0]

    def by_task(self) -> Dict[str, Teacher]:
        return dict(self.tasks)

    @property
    def splits(self) -> List[str]:
        """Names of the splits that all tasks have."""
        first, *others = self.tasks.values()
        return [split for split in first.splits if all(split in task.splits for task in others)]

    def check_sources(self) -> None:
        """Check that the files of all tasks exist.

        RAISES (DataError): If a file cannot be read.
        """
        for task in self.tasks.values():
            task.check_sources()

    def files(self, split: str) -> List[str]:
        """Return the files of a split, see ``Teacher.files``, of one task after the other."""
        return [path for task in self.tasks.values() for path in task.files(split)]

    def for_split(self, split: str, **settings: Any) -> Teacher:
        """Raise an error, because the tasks of a mixture show their split already.

        RAISES (ProtocolError): Always.
        """
        raise ProtocolError(
            f"{self.id}.for_split() was called on a mixture: call it on each of the tasks, "
            "and mix the teachers that it returns."
        )


def mix_tasks(
    teachers: Mapping[str, Teacher],
    *,
    weights: Optional[Mapping[str, float]] = None,
    unit: Unit = "examples",
    repeat: bool = False,
) -> Teacher:
    """Return a teacher that mixes several tasks (see ``MultiTask``); of a single task, its teacher.

    teachers (Mapping[str, Teacher]): Task name to a teacher that shows a split.
    weights (Optional[Mapping[str, float]]): Task name to the task's weight; a task of weight 0 is
        left out. None to weight the tasks by their sizes.
    unit (Unit): Unit that the weights count: "episodes", "examples" or "words".
    repeat (bool): Whether to repeat a task until all tasks were shown completely.
    RAISES (ConfigError): If the weights, the unit or the name of a task is invalid.
    """
    problems = [*_name_problems(list(teachers)), *_weight_problems(list(teachers), weights)]
    if unit not in get_args(Unit):
        hint = f"choose one of: {', '.join(get_args(Unit))}"
        problems.append(Problem("", f"[mixture] 'unit' is {unit!r}", hint))
    if problems:
        raise ConfigError(problems)
    if len(teachers) == 1:
        (only,) = teachers.values()
        return only
    if weights is None:
        return MultiTask(teachers, unit=unit, repeat=repeat)
    mixed = {name: teacher for name, teacher in teachers.items() if weights[name]}
    whole = _whole_numbers([weights[name] for name in mixed])
    return MultiTask(mixed, weights=whole, unit=unit, repeat=repeat)


def _name_problems(names: List[str]) -> List[Problem]:
    if not names:
        return [Problem("", "[tasks] has no task", "give one or more")]
    if MACRO in names and len(names) > 1:
        text = f"[tasks.{MACRO}] has the name that reports use for the mean over tasks"
        return [Problem("", text, "choose another name")]
    return []


def _weight_problems(names: List[str], weights: Optional[Mapping[str, float]]) -> List[Problem]:
    if weights is None:
        return []
    problems = []
    for name, weight in weights.items():
        if name not in names:
            hint = nearest(name, names).lstrip("; ") or f"found: {', '.join(names)}"
            problems.append(Problem("", f"[mixture.weights] there is no task '{name}'", hint))
        elif not 0 <= weight < math.inf:
            text = f"[mixture.weights] '{name}' is {weight}"
            problems.append(Problem("", text, "give a number, 0 or more"))
    for name in names:
        if name not in weights:
            text = f"[mixture.weights] has no weight for the task '{name}'"
            problems.append(Problem("", text, f"add: {name} = 1; 0 leaves the task out"))
    if not problems and not any(weights.values()):
        text = "[mixture.weights] are all 0"
        problems.append(Problem("", text, "set one above 0, or no example is used"))
    return problems


def _whole_numbers(weights: Sequence[float]) -> List[int]:
    """Return the smallest whole numbers in the same proportions. 0.1 counts as exactly a tenth, not
    as the nearest double."""
    exact = [Fraction(str(weight)) for weight in weights]
    common = math.lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * common) for weight in exact]
    divisor = math.gcd(*whole)
    return [weight // divisor for weight in whole]
