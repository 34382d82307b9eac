"""Evaluate an agent on one split of its tasks."""

from contextlib import nullcontext
from itertools import chain, groupby, islice
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..messages import Message
from ..metrics import Metric, merge_tasks, report_values
from ..protocol import Agent
from ..teachers import Teacher
from ..worlds import World, WorldFactory
from .predictions import Recorder

# Takes a task's name and the task, shows all its examples to the agent and returns the report.
ShowTask = Callable[[str, Teacher], Dict[str, Metric]]


def evaluate_agent(
    agent: Agent, teacher: Teacher, make_world: WorldFactory, recorder: Optional[Recorder] = None
) -> Dict[str, float]:
    """Evaluate an agent in one pass over the teacher's examples, each exactly once.

    The result depends neither on the world nor on its batches, because the products for an example
    are the same in any batch, and metrics are added exactly. (But if a batcher truncates examples,
    the agent reads less.)

    Several tasks are evaluated one after the other. ``<metric>`` is then the value for all
    examples, ``<task>/<metric>`` for one task, and ``macro/<metric>`` the mean over tasks.

    make_world (WorldFactory): Makes the world in which teacher and agent meet.
    recorder (Optional[Recorder]): Records every reply; None to record nothing.
    RETURNS (Dict[str, float]): Metric name to value.
    """

    def measure(name: str, task: Teacher) -> Dict[str, Metric]:
        order: Any = task.order  # Not a mixture, because each task is measured by itself.
        keeping = order.keeping_ids() if recorder else nullcontext({})
        # The agent is not copied, because only the original has batch_act().
        with keeping as ids, make_world(task, agent) as world:
            answer_all(world, name, recorder)
            if recorder is not None:
                recorder.arrange(name, (name for block in sorted(ids) for name in ids[block]))
            return world.report()

    return evaluate_by(measure, agent, teacher)


def evaluate_by(measure: ShowTask, agent: Agent, teacher: Teacher) -> Dict[str, float]:
    """Evaluate an agent like ``evaluate_agent()``, with any function that measures a task.

    measure (ShowTask): Lets the agent answer the examples of one task, and returns the report.
    RETURNS (Dict[str, float]): Metric name to value.
    """
    # The agent may be in the middle of a conversation of its training. ``reset()`` replaces the
    # attributes with its state, so they can be restored.
    known = dict(agent.__dict__)
    reports: Dict[str, Dict[str, Metric]] = {}
    try:
        for name, task in teacher.by_task().items():
            agent.reset_metrics()
            task.reset_metrics()
            with agent.evaluating():
                reports[name] = measure(name, task)
                # This metric depends on the batches, and so on the number of workers.
                reports[name].pop("padding_fraction", None)
    finally:
        agent.__dict__.update(known)
        agent.reset_metrics()
    return report_values(merge_tasks(reports))


def answer_all(
    world: World,
    task: str,
    recorder: Optional[Recorder],
    parleyed: Callable[[], None] = lambda: None,
) -> None:
    """Let the agent of a world answer all examples.

    task (str): Name of the task.
    recorder (Optional[Recorder]): Records every reply.
    parleyed (Callable[[], None]): Called after each parley.
    """
    world.start_epoch(0, 0)
    while not world.epoch_done():
        world.parley()
        parleyed()
        if recorder is not None and world.acts:
            # The acts of teacher and agent are first; other agents may take part.
            recorder.record(task, *world.acts[:2])


def sample_exchanges(
    agent: Agent, teacher: Teacher, n_conversations: int
) -> List[List[Tuple[Message, Message]]]:
    """Let an agent answer the first conversations of a split. With several tasks, the same number
    of conversations is used from each task, if possible.

    If a conversation was flattened into single examples, its turns are joined again.

    RETURNS (List[List[Tuple[Message, Message]]]): For each conversation, pairs of the teacher's
        message and the agent's reply, in order.
    """
    tasks = teacher.by_task()
    conversations: List[List[Tuple[Message, Message]]] = []
    for place, task in enumerate(tasks.values()):
        n_wanted = (n_conversations + len(tasks) - 1 - place) // len(tasks)
        player = agent.clone()
        examples = chain.from_iterable(task.episodes() if n_wanted else ())
        for _, messages in islice(groupby(examples, _conversation_of), n_wanted):
            conversations.append([])
            for message in messages:
                player.observe(message)
                reply = player.act()
                player.self_observe(reply)
                conversations[-1].append((message, reply))
    agent.reset_metrics()
    return conversations


def _conversation_of(message: Message) -> str:
    name = str(message["id"])
    return name.rpartition("/")[0] or name
