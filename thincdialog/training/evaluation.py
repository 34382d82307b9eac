"""Evaluates an agent on one split of a task."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from ..agents import ModelAgent
from ..batchers import Fixed
from ..messages import Message
from ..metrics import ExampleMetric, report_values
from ..ops.exact_products import exact_products
from ..protocol import Agent
from ..teachers import Teacher
from ..worlds import BatchWorld

# Samples of examples and candidates stay the same whatever the seed of the training,
# so that runs can be compared.
EVALUATION_SEED = 0


def evaluation_teacher(
    task: Teacher, split: str, settings: Mapping[str, Any], metrics: List[ExampleMetric]
) -> Teacher:
    """The teacher of a split as ``[evaluation]`` wants it.

    settings (Mapping[str, Any]): max_examples and n_candidates (ints, 0 = off).
    """
    teacher = task.for_split(
        split,
        max_examples=settings["max_examples"],
        n_candidates=settings["n_candidates"],
        seed=EVALUATION_SEED,
    )
    teacher.set_metrics([metric.fresh() for metric in metrics])
    return teacher


def evaluate_agent(agent: Agent, teacher: Teacher, batch_size: int) -> Dict[str, float]:
    """One pass over the teacher's examples, each exactly once.

    The result does not depend on batch_size: products are exact, sums too. (Only
    padding_fraction, of models that pad, tells of the batches.)

    batch_size (int): Conversations that go through the agent together.
    RETURNS (Dict[str, float]): Metric name to value.
    """
    agent.reset_metrics()
    teacher.reset_metrics()
    teacher.start_epoch(0, 0)
    with BatchWorld(teacher, agent, Fixed(batch_size)) as world, _exact(agent):
        while not world.epoch_done():
            world.parley()
        report = report_values(world.report())
    agent.reset_metrics()
    return report


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
    """Plays the first conversations of a split, one by one.

    Turns of a conversation that was flattened into single examples stand together.

    RETURNS (List[List[Tuple[Message, Message]]]): For each conversation the
        teacher's messages and the agent's replies, in order.
    """
    conversations: List[List[Tuple[Message, Message]]] = []
    name = None
    teacher.start_epoch(0, 0)
    player = agent.clone()
    while not teacher.epoch_done():
        message = teacher.act()
        conversation = str(message["id"]).rpartition("/")[0]
        if conversation != name or not conversation:
            if len(conversations) == n_conversations:
                break
            conversations.append([])
            name = conversation
        player.observe(message)
        reply = player.act()
        teacher.observe(reply)
        player.self_observe(reply)
        conversations[-1].append((message, reply))
    agent.reset_metrics()
    teacher.reset_metrics()
    return conversations
