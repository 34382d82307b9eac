"""What can be tried of a config without its data: parts of users, on invented examples."""

from typing import Any, List

from ..contract import CodeError, is_users, place_in, told_of_code
from ..errors import ConfigError, PlanError, Problem
from ..metrics import report_values
from ..teachers import IterableTeacher
from ..training.experiment import Experiment

TEXTS = ("one", "two and three", "four five six seven")
LABELS = ("yes", "no")
# Errors that are slips whatever the data is.
SLIPS = (AttributeError, NameError, NotImplementedError, TypeError)


def rehearse(experiment: Experiment) -> List[Problem]:
    """Let the agent learn and answer a few invented texts in its world, and the metrics score
    the answers, to find what users' parts do wrong. Other errors are no problem here, as texts
    and labels are not those that the config is for; and an agent of a user's may need what
    nobody can invent: of its errors, ``SLIPS`` are told.

    experiment (Experiment): Fresh; its agent is of no use afterwards.
    RETURNS (List[Problem]): What is wrong.
    """
    agent: Any = experiment.agent
    is_ours = agent.learns and not is_users(type(agent).learn)
    reads_more = experiment.tokenizer is None or agent.reading().other_fields
    if is_ours and reads_more:
        return []  # It reads features, and nobody knows which.
    try:
        with experiment.working():
            _learn_and_answer(experiment)
    except ConfigError as error:
        return list(error.problems)
    except (CodeError, PlanError) as error:
        return [Problem("", str(error))]
    except Exception as error:
        is_told = place_in(error) and (is_ours or isinstance(error, SLIPS))
        return [Problem("", told_of_code(error))] if is_told else []
    return []


def _learn_and_answer(experiment: Experiment) -> None:
    agent: Any = experiment.agent
    labels = list(agent.reading().labels or LABELS)
    rows = [
        {"text": text, "labels": [labels[n % len(labels)]], "label_candidates": labels}
        for n, text in enumerate(TEXTS)
    ]
    teacher = IterableTeacher({"train": rows})
    train = teacher.for_split("train", training=True)
    agent.initialize(train, tokenizer=experiment.tokenizer, seed=experiment.seed)
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
