"""Try the agent of a config on invented texts, before any data is read."""

from typing import Any, List

from ..contract import CodeError, check_attributes, code_error_line, is_ours, is_users, place_in
from ..errors import ConfigError, DataError, PlanError, Problem
from ..evaluation.unreachable import find_unreachable
from ..metrics import report_values
from ..teachers import IterableTeacher
from ..training.experiment import Experiment

TEXTS = ("one", "two and three", "four five six seven")
LABELS = ("yes", "no")
# Errors that are mistakes in the code with any data.
CODE_ERRORS = (AttributeError, NameError, NotImplementedError, TypeError)


def try_agent(experiment: Experiment) -> List[Problem]:
    """Find mistakes in custom code: the agent trains on a few invented texts and answers them in
    its world, and the metrics score the answers. Errors that may be due to the invented texts are
    not reported: those of data and files, and all but ``CODE_ERRORS`` if the agent is custom code.

    experiment (Experiment): A new experiment, whose agent cannot be used afterwards.
    RETURNS (List[Problem]): The mistakes.
    """
    agent: Any = experiment.agent
    # Built-in agents may read features or other fields, whose names are not known here.
    reads_more = experiment.tokenizer is None or agent.reading().other_fields
    if agent.learns and not is_users(type(agent).learn) and reads_more:
        return []
    reported = Exception if agent.learns and is_ours(type(agent)) else CODE_ERRORS
    try:
        with experiment.working():
            _learn_and_answer(experiment)
    except ConfigError as error:
        return error.problems
    except (CodeError, PlanError) as error:
        return [Problem("", str(error))]
    except (DataError, OSError):
        pass
    except Exception as error:
        if isinstance(error, reported) and place_in(error):
            return [Problem("", code_error_line(error))]
    return []


def _learn_and_answer(experiment: Experiment) -> None:
    """Train the agent on the invented texts, and let it answer them."""
    agent: Any = experiment.agent
    labels = agent.reading().labels or LABELS
    rows = [
        {"text": text, "labels": [labels[n % len(labels)]], "label_candidates": list(labels)}
        for n, text in enumerate(TEXTS)
    ]
    teacher = IterableTeacher({"train": rows})
    train, dev = teacher.for_split("train", training=True), teacher.for_split("train")
    agent.initialize(train, tokenizer=experiment.tokenizer, seed=experiment.seed)
    check_attributes(agent)
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
