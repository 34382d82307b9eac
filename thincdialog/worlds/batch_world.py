"""A teacher and an agent in many conversations at once."""

from typing import Iterator, List, NamedTuple, Sequence

from ..batchers import Batcher
from ..errors import ProtocolError
from ..messages import Message
from ..protocol import Agent, Observations, can_batch
from ..registry import registry
from ..teachers.teacher import Teacher
from .world import World, WorldFactory


@registry.worlds("thincdialog.BatchWorld.v1")
def build_batch_world(batcher: Batcher) -> WorldFactory:
    """Many conversations at once, answered in batches.

    batcher (Batcher): How many go together.
    """

    def create_batch_world(teacher: Teacher, agent: Agent) -> BatchWorld:
        return BatchWorld(teacher, agent, batcher)

    return create_batch_world


class Row(NamedTuple):
    """One conversation: a copy of the teacher talks with a copy of the agent."""

    teacher: Teacher
    agent: Agent


class BatchWorld(World):
    """Up to ``batcher.size`` conversations, each between a copy of the teacher and a
    copy of the agent; all of them are answered by one ``batch_act`` of the original
    agent, or one by one if it has none.

    A conversation whose teacher copy has nothing left to say takes no part, so a
    batch holds no filling. Where every example is a conversation of its own and the
    agent offers ``batch_observe``, whole batches go over in columns and there are
    no copies.

    teacher (Teacher): Where the messages come from.
    agent (Agent): Who answers.
    batcher (Batcher): How many conversations go together.
    """

    def __init__(self, teacher: Teacher, agent: Agent, batcher: Batcher):
        super().__init__([teacher, agent])
        self.teacher = teacher
        self.agent = agent
        self.batcher = batcher
        self.rows: List[Row] = []
        self.live: List[Row] = []
        self.has_batch_act = can_batch(agent)
        self.in_columns = (
            self.has_batch_act and teacher.is_single_turn and hasattr(agent, "batch_observe")
        )

    def _parley(self) -> None:
        if self.in_columns:
            messages: Sequence[Message] = self.teacher.batch_act(self.batcher.size)
            replies = self._answer(self.agent.batch_observe(messages))  # type: ignore[attr-defined]
            self.teacher.batch_observe(replies)
        else:
            messages = self.teachers_act()
            replies = self.batch_act(self.batch_observe(messages))
            for row, reply in zip(self.live, replies):
                row.teacher.observe(reply)
                row.agent.self_observe(reply)
        self.acts = (messages, replies)

    def teachers_act(self) -> List[Message]:
        """Every teacher copy that has something left to say says it; those
        conversations take part in this parley."""
        self.live = []
        messages = []
        for row in self._rows():
            # Asked only now: the last episode may have gone to the row before.
            if not row.teacher.epoch_done():
                self.live.append(row)
                messages.append(row.teacher.act())
        return messages

    def _rows(self) -> Iterator[Row]:
        """All conversations; new ones begin while there is room and data for them."""
        yield from self.rows
        while len(self.rows) < self.batcher.size and not self.teacher.epoch_done():
            row = Row(self.teacher.clone(), self.agent.clone())
            self.rows.append(row)
            yield row

    def batch_observe(self, messages: Sequence[Message]) -> Observations:
        """Every agent copy observes the message of its conversation."""
        return [row.agent.observe(message) for row, message in zip(self.live, messages)]

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        """The replies, one for each conversation that takes part."""
        if self.has_batch_act:
            return self._answer(observations)
        return [row.agent.act() for row in self.live]

    def _answer(self, observations: Observations) -> Sequence[Message]:
        replies = self.agent.batch_act(observations)  # type: ignore[attr-defined]
        if len(replies) != len(observations):
            raise ProtocolError(
                f"{self.agent.id}.batch_act() gave {len(replies)} replies "
                f"to {len(observations)} observations."
            )
        return replies

    def epoch_done(self) -> bool:
        """Whether every example was handed out and answered."""
        return self.teacher.epoch_done() and all(row.teacher.epoch_done() for row in self.rows)

    def reset(self) -> None:
        """Drop all conversations."""
        super().reset()
        self.rows = []
        self.live = []

    def shutdown(self) -> None:
        """Drop all conversations; the teacher and the agent stay."""
        super().shutdown()
        self.rows = []
        self.live = []
