"""Try a config without its data: run custom components on invented examples."""

import io
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple, Type, Union

from ..callbacks.callback import shall_end
from ..config import build_block
from ..config.functions import describe_function
from ..contract import (
    CodeError,
    called,
    check_attributes,
    is_ours,
    is_users,
    place_in,
    told_of_code,
)
from ..errors import ConfigError, DataError, PlanError, Problem
from ..evaluation.unreachable import find_unreachable
from ..examples.mutating import mutated, own_mutator
from ..loggers.chain import DONE, PAIR
from ..loggers.logger import LoggedRun
from ..loggers.values import leaves
from ..messages import Message
from ..metrics import report_values
from ..protocol import StepReport
from ..teachers import IterableTeacher
from ..training.experiment import Experiment
from ..training.log_rows import LogRows
from ..training.progress import Position
from .leaving_nothing import LeavingError, leaving_nothing

TEXTS = ("one", "two and three", "four five six seven")
LABELS = ("yes", "no")
# Errors that are mistakes in the code with any data.
SLIPS = (AttributeError, NameError, NotImplementedError, TypeError)
Kinds = Union[Type[Exception], Tuple[Type[Exception], ...]]


def rehearse(experiment: Experiment) -> List[Problem]:
    """Find mistakes in custom components. The agent trains on a few invented texts and answers them
    in its world, the metrics score the answers, custom mutators receive the same texts, and custom
    loggers and callbacks receive invented rows. Other errors are not reported, because the texts
    and labels are not those of the config. An agent or a custom mutator may need fields that cannot
    be invented, so only their ``SLIPS`` are reported. Loggers and callbacks have no lasting effect
    (see ``leaving_nothing``).

    experiment (Experiment): A new experiment, whose agent cannot be used afterwards.
    RETURNS (List[Problem]): The mistakes.
    """
    agent: Any = experiment.agent
    learns_as_ours = agent.learns and not is_users(type(agent).learn)
    problems: List[Problem] = []
    for section, build in _own_blocks(experiment, "mutators"):
        _attempt(problems, _mutate, build, section=section, told=SLIPS)
    # Built-in agents may read features or other fields, whose names are not known here.
    reads_more = experiment.tokenizer is None or agent.reading().other_fields
    has_learnt = False
    if not (learns_as_ours and reads_more):
        kinds = Exception if agent.learns and is_ours(type(agent)) else SLIPS
        with experiment.working():
            has_learnt = _attempt(problems, _learn_and_answer, experiment, told=kinds)
    for section, build in _own_blocks(experiment, "loggers"):
        _attempt(problems, _log, experiment, build, section=section)
    for section, build in _own_blocks(experiment, "callbacks") if has_learnt else ():
        _attempt(problems, _call_back, experiment, build, section=section)
    return problems


def _attempt(
    problems: List[Problem], part: Callable, *given: Any, section: str = "", told: Kinds = Exception
) -> bool:
    """Call a part of the rehearsal, and return whether it completed.

    problems (List[Problem]): The problems so far, to which those of this part are added.
    part (Callable): The part; it is called with the arguments ``given``.
    section (str): Section of the config that the part belongs to.
    told (Kinds): Errors to report as problems, if they are raised in custom code. Errors of files
        and servers are never reported.
    """
    where = f"[{section}] " if section else ""
    try:
        part(*given)
    except ConfigError as error:
        problems += error.problems
    except (CodeError, DataError, PlanError) as error:
        # A DataError counts only if it is about a custom component.
        if not isinstance(error, DataError) or section:
            problems.append(Problem("", f"{where}{error}"))
    except (LeavingError, OSError):
        pass
    except Exception as error:
        if isinstance(error, told) and place_in(error):
            problems.append(Problem("", f"{where}{told_of_code(error)}"))
    else:
        return True
    return False


def _own_blocks(experiment: Experiment, kind: str) -> Iterator[Tuple[str, Callable[[], Any]]]:
    """Yield the section of each block that a user's function builds, and a function to build it.

    kind (str): Registry of these functions.
    """
    for name, value in leaves(experiment.checked.interpolated):
        section, _, key = name.rpartition(".")
        if key == f"@{kind}" and is_users(describe_function(kind, value).function):
            yield section, partial(build_block, experiment.checked, section)


def _mutate(build: Callable[[], Any]) -> None:
    def episodes() -> Iterator[List[Message]]:
        for number, row in enumerate(_rows(LABELS)):
            yield [Message(row, id=f"{number}/0")]

    for _ in mutated(own_mutator(build()), episodes, "train", "an invented text"):
        pass


def _rows(labels: Sequence[str]) -> List[Dict[str, Any]]:
    return [
        {"text": text, "labels": [labels[n % len(labels)]], "label_candidates": list(labels)}
        for n, text in enumerate(TEXTS)
    ]


def _log(experiment: Experiment, build: Callable[[], Any]) -> None:
    with leaving_nothing() as folder:
        run = LoggedRun(experiment.checked.interpolated, str(folder), total_steps=1)
        log_step, finalize = called(build(), PAIR, run, io.StringIO(), io.StringIO())
        for info in _log_rows(experiment):
            called(log_step, DONE, info)
            called(log_step, DONE, None)
        called(finalize, DONE)


def _call_back(experiment: Experiment, build: Callable[[], Any]) -> None:
    with leaving_nothing():
        callback = build()
        for info in _log_rows(experiment):
            shall_end(callback, info, experiment.agent)


class _Scores(Dict[str, float]):
    """Return a score for any name, because a logger may look up names that are not known here."""

    def __missing__(self, name: str) -> float:
        return 0.5


def _log_rows(experiment: Experiment) -> Iterator[Dict[str, Any]]:
    """Yield rows like those of the first two evaluations: at step 0, before any training, and at
    step 1."""
    score = experiment.training["score"]
    rows, position = LogRows(score), Position()
    for step in range(2):
        if step:
            position.step = position.examples = step
            rows.count(StepReport(1, loss=0.5, weight=1, gradient_norm=0.5))
        info = rows.make(
            position,
            float(step),
            {score: 0.5},
            True,
            is_evaluation=True,
            learn_rate=0.001 if step else None,
            gradient_norm=0.5 if step else None,
            total_steps=1,
        )
        yield {**info, "scores": _Scores(info["scores"])}


def _learn_and_answer(experiment: Experiment) -> None:
    agent: Any = experiment.agent
    teacher = IterableTeacher({"train": _rows(agent.reading().labels or LABELS)})
    train = teacher.for_split("train", training=True)
    agent.initialize(train, tokenizer=experiment.tokenizer, seed=experiment.seed)
    check_attributes(agent)
    dev = teacher.for_split("train")
    dev.set_metrics([metric.fresh() for metric in experiment.metrics])
    for each in (train, dev):
        with experiment.make_world(each, agent) as world:
            world.start_epoch(0, experiment.seed)
            while not world.epoch_done():
                if agent.learns:
                    agent.begin_microbatch(experiment.seed, 1, 0)
                world.parley()
                if agent.learns and each is train:
                    agent.update(experiment.optimizer)
            report_values(world.report())
    find_unreachable(agent, dev)
