"""A world that answers many conversations in batches."""

from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ..batchers import Batcher
from ..errors import ProtocolError
from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .batching import ManyConversations, measure_of
from .dynamic_batch_world import DynamicBatchWorld
from .multi_agent_world import MultiAgentWorld, PartnerWorld
from .world import World, WorldFactory


@registry.worlds("thincdialog.BatchWorld.v1")
def build_batch_world(
    batcher: Batcher, conversation: Optional[WorldFactory] = None
) -> WorldFactory:
    """Run many conversations at once, and answer their messages in batches. If episodes of several
    turns are to be batched by length, this makes a ``DynamicBatchWorld``.

    batcher (Batcher): Chooses the messages that are answered together.
    conversation (Optional[WorldFactory]): World of each conversation, such as
        "thincdialog.MultiAgentWorld.v1"; null for "thincdialog.PartnerWorld.v1".
    """

    return partial(batch_world, batcher=batcher, conversation=conversation or PartnerWorld)


def batch_world(
    teacher: Teacher, agent: Agent, batcher: Batcher, conversation: WorldFactory = PartnerWorld
) -> World:
    """Make the world that suits the batcher: a ``BatchWorld``, or a ``DynamicBatchWorld`` if the
    batcher uses lengths and the data or the agent does not support whole batches.

    teacher (Teacher): The agent whose messages come from data.
    agent (Agent): The agent that answers.
    batcher (Batcher): Chooses the messages that are answered together.
    conversation (WorldFactory): World of each conversation.
    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    RAISES (ProtocolError): If the world of a conversation cannot be run in batches.
    """
    world = conversation(teacher, agent)
    if batcher.needs_lengths and not takes_batches(world):
        return DynamicBatchWorld(world, batcher)
    return BatchWorld(world, batcher)


def takes_batches(world: World) -> bool:
    """Return whether the teacher can pass whole batches to the agent, without copies of the
    world."""
    if type(world) is not PartnerWorld:
        return False
    agent = world.agent
    return agent.can_batch and agent.takes_batches and world.teacher.is_single_turn


class BatchWorld(ManyConversations):
    """Run as many conversations as a batch holds, each of which is a copy of a world. One
    ``batch_act()`` of the original agent answers all of them; if the agent has none, its copies
    answer one by one.

        BatchWorld(teacher, agent, Fixed(32))
        BatchWorld(MultiAgentWorld([teacher, agent, another]), Fixed(32))

    A conversation whose copy of the teacher has no messages left takes no part, so a batch has no
    padding rows. There are no copies if a teacher talks with a single agent, every example is a
    conversation of its own, and the agent ``takes_batches``: then the batcher chooses whole
    batches, which the teacher passes to the agent.

    world, teacher, agent, batcher: See ``ManyConversations``, also for other errors.
    RAISES (ProtocolError): If the batcher uses lengths and there are copies (see ``batch_world``).
    """

    def _get_ready(self) -> None:
        self.step = 0  # Number of batches so far. The teacher counts whole batches instead.
        self.rows: List[Any] = []  # The conversations, which are copies of the world.
        self.has_whole_batches = takes_batches(self.world)
        batcher = self.batcher
        if batcher.needs_lengths and not self.has_whole_batches:
            raise ProtocolError(
                f"BatchWorld(..., {type(batcher).__name__}) needs lengths, but this data "
                "or agent does not support batches: use worlds.batch_world() or DynamicBatchWorld."
            )
        if self.has_whole_batches:
            self.teacher.set_batches(batcher, measure_of(batcher, self.agent))

    def _parley(self) -> None:
        if self.has_whole_batches:
            batch = self.teacher.batch_act()
            self.heard = batch
            replies = self.agent.batch_act(batch)
            self.teacher.batch_observe(replies)
            self.acts = (batch, replies)
        else:
            live = self._next_messages()
            messages = self.heard = [talk.acts[0] for talk in live]
            self.acts = (messages, *self._answer(live))
            self.step += 1

    def _next_messages(self) -> List[MultiAgentWorld]:
        """Make each teacher copy that has messages left say its next message.

        RETURNS (List[MultiAgentWorld]): The conversations that take part in this parley.
        """
        size = self.batcher.sizes.at(self.step)
        live: List[MultiAgentWorld] = []
        n_asked = 0
        for talk in self._talks(size):
            n_asked += 1
            # Check only now, because the previous conversation may have taken the last episode.
            if not talk._epoch_done():
                self._begin(talk)
                live.append(talk)
                if len(live) == size:
                    break
        # If the batch size has decreased, conversations without room come first next time.
        self.rows = self.rows[n_asked:] + self.rows[:n_asked]
        return live

    def _talks(self, size: int) -> Iterator[MultiAgentWorld]:
        """Yield all conversations, and begin new ones while there is room and data for them."""
        yield from self.rows
        while len(self.rows) < size and not self.world._epoch_done():
            self.rows.append(self.world.clone())
            yield self.rows[-1]

    def _epoch_done(self) -> bool:
        return self.world._epoch_done() and all(row._epoch_done() for row in self.rows)

    def _state(self) -> Dict[str, Any]:
        rows = [[row.agents[0].place(), self._conversation_state(row)] for row in self.rows]
        return {"teacher": self.teacher.state(), "step": self.step, "rows": rows}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.step = state["step"]
        copies = self.teacher.restore(state["teacher"], [place for place, _ in state["rows"]])
        for copy, (_, known) in zip(copies, state["rows"]):
            self.rows.append(self.world.clone())
            self._take_up(self.rows[-1], copy, known)

    def reset(self) -> None:
        """Drop all conversations, and make all agents forget theirs."""
        super().reset()
        self.rows = []

    def shutdown(self) -> None:
        """Drop all conversations. The teacher and the agent stay usable."""
        super().shutdown()
        self.rows = []
