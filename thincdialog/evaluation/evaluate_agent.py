"""Evaluates an agent on one split of its tasks."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ..agents import ModelAgent
from ..config import CheckedConfig
from ..messages import Message
from ..metrics import ExampleMetric, Metric, merge_tasks, report_values
from ..metrics.class_f1 import ClassF1
from ..ops.dialog_ops import exact_products
from ..protocol import Agent
from ..teachers import Teacher
from ..training.task import by_task, split_of
from ..worlds import World, WorldFactory
from .predictions import Recorder

# Samples of examples and candidates stay the same whatever the seed of the training,
# so that runs can be compared.
EVALUATION_SEED = 0


def evaluation_teacher(
    checked: CheckedConfig, parts: Dict[str, Any], split: str, with_metrics: bool = True
) -> Teacher:
    """The teacher of a split as ``[evaluation]`` wants it; of several tasks, each as it
    wants it.

    checked (CheckedConfig): The config that ``parts`` were built from.
    parts (Dict[str, Any]): From ``resolve_config``.
    split (str): "train", "dev" or "test".
    with_metrics (bool): Whether it shall score replies.
    RAISES (DataError): If the config gives no data for the split.
    """
    settings = parts["evaluation"]
    teacher = split_of(
        checked,
        parts,
        split,
        whole=True,
        max_examples=settings["max_examples"],
        n_candidates=settings["n_candidates"],
        seed=EVALUATION_SEED,
    )
    metrics = scored_by(settings["metrics"], parts["agent"]) if with_metrics else []
    for task in by_task(teacher).values():
        task.set_metrics([metric.fresh() for metric in metrics])
    return teacher


def scored_by(metrics: Sequence[ExampleMetric], agent: Agent) -> List[ExampleMetric]:
    """What an agent's replies are scored by: of a classifier, also by how well each class is
    found, as words say little about classes.

    metrics (Sequence[ExampleMetric]): Those of the config.
    """
    has_classes = getattr(agent, "replies_with_classes", False)
    if has_classes and not any(isinstance(metric, ClassF1) for metric in metrics):
        return [*metrics, ClassF1()]
    return list(metrics)


def evaluate_agent(
    agent: Agent,
    teacher: Teacher,
    make_world: WorldFactory,
    recorder: Optional[Recorder] = None,
) -> Dict[str, float]:
    """One pass over the teacher's examples, each exactly once.

    The result depends neither on the world nor on its batches: products are exact, sums
    too. (Only padding_fraction, of models that pad, tells of the batches; and a batcher
    that truncates makes the agent read less.)

    Of several tasks, each is shown whole and by itself, one after the other. A metric then
    has the value over all examples; ``<task>/<metric>`` has that of one task, and
    ``macro/<metric>`` the mean over tasks.

    make_world (WorldFactory): Gives the world to evaluate in.
    recorder (Optional[Recorder]): Is filled with every reply.
    RETURNS (Dict[str, float]): Metric name to value.
    """
    reports = {
        name: _measure(agent, task, make_world, name, recorder)
        for name, task in by_task(teacher).items()
    }
    if list(reports) == [""]:
        return report_values(reports[""])
    return report_values(merge_tasks(reports))


def _measure(
    agent: Agent,
    teacher: Teacher,
    make_world: WorldFactory,
    name: str,
    recorder: Optional[Recorder],
) -> Dict[str, Metric]:
    agent.reset_metrics()
    teacher.reset_metrics()
    with _exact(agent), _conversation_kept(agent):
        # Not a copy of the agent: batch_act is the original's alone.
        with make_world(teacher, agent) as world:
            world.start_epoch(0, 0)
            if recorder is not None:
                recorder.record(name, teacher, _acts(world))
            while not world.epoch_done():
                world.parley()
            report = world.report()
    agent.reset_metrics()
    return report


def _acts(world: World) -> Iterator[Sequence]:
    while not world.epoch_done():
        world.parley()
        yield world.acts


@contextmanager
def _conversation_kept(agent: Agent) -> Iterator[None]:
    """The agent itself may be in the middle of a conversation of its training; ``reset``
    replaces what it knows of one, so it can be put back."""
    known = dict(agent.__dict__)
    try:
        yield
    finally:
        agent.__dict__.update(known)


@contextmanager
def _exact(agent: Agent) -> Iterator[None]:
    """The agent with exact products, and nothing that was computed without them."""
    if not isinstance(agent, ModelAgent):
        yield
        return
    agent.forget_computed()
    with exact_products(agent.model.ops):
        yield
    agent.forget_computed()


def sample_exchanges(
    agent: Agent, teacher: Teacher, n_conversations: int
) -> List[List[Tuple[Message, Message]]]:
    """Plays the first conversations of a split, one by one; of several tasks, as many of
    each, as far as that is possible.

    Turns of a conversation that was flattened into single examples stand together.

    RETURNS (List[List[Tuple[Message, Message]]]): For each conversation the
        teacher's messages and the agent's replies, in order.
    """
    tasks = by_task(teacher)
    conversations: List[List[Tuple[Message, Message]]] = []
    for place, task in enumerate(tasks.values()):
        n_wanted = (n_conversations + len(tasks) - 1 - place) // len(tasks)
        conversations += _played(agent, task, n_wanted)
    agent.reset_metrics()
    return conversations


def _played(agent: Agent, teacher: Teacher, n_wanted: int) -> List[List[Tuple[Message, Message]]]:
    conversations: List[List[Tuple[Message, Message]]] = []
    name = None
    teacher.start_epoch(0, 0)
    player = agent.clone()
    while n_wanted and not teacher.epoch_done():
        message = teacher.act()
        conversation = str(message["id"]).rpartition("/")[0]
        if conversation != name or not conversation:
            if len(conversations) == n_wanted:
                break
            conversations.append([])
            name = conversation
        player.observe(message)
        reply = player.act()
        teacher.observe(reply)
        player.self_observe(reply)
        conversations[-1].append((message, reply))
    teacher.reset_metrics()
    return conversations
