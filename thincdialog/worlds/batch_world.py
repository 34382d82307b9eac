"""A teacher and an agent in many conversations at once."""

from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from ..batchers import Batcher
from ..errors import ProtocolError
from ..messages import Message
from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .batching import Talk, check_oversize, exchange, measure_of
from .dynamic_batch_world import DynamicBatchWorld
from .world import World, WorldFactory


@registry.worlds("thincdialog.BatchWorld.v1")
def build_batch_world(batcher: Batcher) -> WorldFactory:
    """Many conversations at once, answered in batches. Where episodes of several turns
    shall be batched by length, it is a ``DynamicBatchWorld``.

    batcher (Batcher): Which messages are answered together.
    """

    return partial(batch_world, batcher=batcher)


def batch_world(teacher: Teacher, agent: Agent, batcher: Batcher) -> World:
    """The world that batches as the batcher wants: a ``BatchWorld``, or, if the batcher
    looks at lengths and the data or the agent takes no batches, a ``DynamicBatchWorld``.

    teacher (Teacher): Where the messages come from.
    agent (Agent): Who answers.
    batcher (Batcher): Which messages are answered together.
    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    """
    check_oversize(batcher, agent)
    if batcher.needs_lengths and not takes_batches(teacher, agent):
        return DynamicBatchWorld(teacher, agent, batcher)
    return BatchWorld(teacher, agent, batcher)


def takes_batches(teacher: Teacher, agent: Agent) -> bool:
    """Whether whole batches can go from teacher to agent, without copies."""
    return agent.can_batch and agent.takes_batches and teacher.is_single_turn


class BatchWorld(World):
    """As many conversations as a batch holds, each between a copy of the teacher and a
    copy of the agent; all of them are answered by one ``batch_act`` of the original
    agent, or one by one if it has none.

    A conversation whose teacher copy has nothing left to say takes no part, so a
    batch holds no filling. Where every example is a conversation of its own and the
    agent ``takes_batches``, whole batches go over, chosen by the teacher as the batcher
    says, and there are no copies.

    teacher (Teacher): Where the messages come from.
    agent (Agent): Who answers.
    batcher (Batcher): How many conversations go together; with copies, one that does not
        look at lengths (see ``batch_world``).
    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    RAISES (ProtocolError): If the batcher looks at lengths and there are copies.
    """

    def __init__(self, teacher: Teacher, agent: Agent, batcher: Batcher):
        check_oversize(batcher, agent)
        super().__init__([teacher, agent])
        self.teacher = teacher
        self.agent = agent
        self.batcher = batcher
        self.step = 0  # Batches so far; of whole ones, the teacher counts them.
        self.rows: List[Talk] = []
        self.live: List[Talk] = []
        self.has_whole_batches = takes_batches(teacher, agent)
        if batcher.needs_lengths and not self.has_whole_batches:
            raise ProtocolError(
                f"BatchWorld(..., {type(batcher).__name__}) has to look at lengths, but this "
                "data or agent takes no batches: use worlds.batch_world() or DynamicBatchWorld."
            )
        if self.has_whole_batches:
            teacher.set_batches(batcher, measure_of(batcher, agent))

    def _parley(self) -> None:
        if self.has_whole_batches:
            batch = self.teacher.batch_act()
            messages: Sequence[Message] = batch
            self.heard = batch
            replies = self.ask(self.agent, batch, len(batch.rows))
            self.teacher.batch_observe(replies)
        else:
            self._go_on()
            messages = self.heard = [talk.said for talk in self.live]
            replies = exchange(self.agent, self.live)
            self.step += 1
        self.acts = (messages, replies)

    def _go_on(self) -> None:
        """Every teacher copy that has something left to say says it; those conversations take
        part in this parley."""
        size = self.batcher.sizes.at(self.step)
        self.live = []
        n_asked = 0
        for talk in self._talks(size):
            n_asked += 1
            # Asked only now: the last episode may have gone to the one before.
            if not talk.teacher.epoch_done():
                talk.go_on()
                self.live.append(talk)
                if len(self.live) == size:
                    break
        # Where sizes fall, those without room go first next time.
        self.rows = self.rows[n_asked:] + self.rows[:n_asked]

    def _talks(self, size: int) -> Iterator[Talk]:
        """All conversations; new ones begin while there is room and data for them."""
        yield from self.rows
        while len(self.rows) < size and not self.teacher.epoch_done():
            self.rows.append(Talk(self.teacher, self.agent))
            yield self.rows[-1]

    def _epoch_done(self) -> bool:
        return self.teacher.epoch_done() and all(row.teacher.epoch_done() for row in self.rows)

    def _state(self) -> Dict[str, Any]:
        rows = [[row.teacher.place(), row.agent.conversation_state()] for row in self.rows]
        return {"teacher": self.teacher.state(), "step": self.step, "rows": rows}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.step = state["step"]
        copies = self.teacher.restore(state["teacher"], [place for place, _ in state["rows"]])
        for copy, (_, known) in zip(copies, state["rows"]):
            self.rows.append(Talk(copy, self.agent))
            self.rows[-1].teacher = copy
            self.rows[-1].agent.set_conversation_state(known)

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
