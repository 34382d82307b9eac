"""Many conversations at once."""

from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ..batchers import Batcher
from ..errors import ProtocolError
from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .batching import ManyConversations, measure_of
from .dynamic_batch_world import DynamicBatchWorld
from .multi_agent_world import MultiAgentWorld
from .partner_world import PartnerWorld
from .world import World, WorldFactory


@registry.worlds("thincdialog.BatchWorld.v1")
def build_batch_world(
    batcher: Batcher, conversation: Optional[WorldFactory] = None
) -> WorldFactory:
    """Run many conversations at once, answered in batches. If episodes of several turns are to
    be batched by length, this is a ``DynamicBatchWorld``.

    batcher (Batcher): Which messages are answered together.
    conversation (Optional[WorldFactory]): The world of each conversation, such as
        "thincdialog.MultiAgentWorld.v1"; null: "thincdialog.PartnerWorld.v1".
    """

    return partial(batch_world, batcher=batcher, conversation=conversation or PartnerWorld)


def batch_world(
    teacher: Teacher, agent: Agent, batcher: Batcher, conversation: WorldFactory = PartnerWorld
) -> World:
    """Make the world that suits the batcher: a ``BatchWorld``, or, if the batcher uses lengths
    and the data or the agent does not support whole batches, a ``DynamicBatchWorld``.

    teacher (Teacher): The agent whose messages come from data.
    agent (Agent): The agent that answers.
    batcher (Batcher): Chooses the messages that are answered together.
    conversation (WorldFactory): The world of each conversation.
    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    RAISES (ProtocolError): If the world of a conversation cannot be run in batches.
    """
    world = conversation(teacher, agent)
    if batcher.needs_lengths and not takes_batches(world):
        return DynamicBatchWorld(world, batcher)
    return BatchWorld(world, batcher)


def takes_batches(world: World) -> bool:
    """Return whether whole batches can be passed from teacher to agent, without copies."""
    if type(world) is not PartnerWorld:
        return False
    agent = world.agent
    return agent.can_batch and agent.takes_batches and world.teacher.is_single_turn


class BatchWorld(ManyConversations):
    """Run as many conversations as a batch holds, each a copy of a world; all of them are answered
    by one ``batch_act()`` of the original agent, or one by one if it has none.

        BatchWorld(teacher, agent, Fixed(32))
        BatchWorld(MultiAgentWorld([teacher, agent, another]), Fixed(32))

    A conversation whose teacher copy has no messages left takes no part, so a batch holds no
    padding rows. If a teacher talks with one agent, every example is a conversation of its own
    and the agent ``takes_batches``, the teacher passes whole batches, chosen by the batcher,
    and there are no copies.

    RAISES (ProtocolError): If the batcher uses lengths and there are copies (see
        ``batch_world``). For arguments and other errors, see ``ManyConversations``.
    """

    def _get_ready(self) -> None:
        self.step = 0  # Batches so far; whole batches are counted by the teacher instead.
        self.rows: List[Any] = []  # The conversations.
        self.has_whole_batches = takes_batches(self.world)
        batcher = self.batcher
        if batcher.needs_lengths and not self.has_whole_batches:
            raise ProtocolError(
                f"BatchWorld(..., {type(batcher).__name__}) has to look at lengths, but this "
                "data or agent takes no batches: use worlds.batch_world() or DynamicBatchWorld."
            )
        if self.has_whole_batches:
            self.teacher.set_batches(batcher, measure_of(batcher, self.agent))

    def _parley(self) -> None:
        if self.has_whole_batches:
            batch = self.teacher.batch_act()
            self.heard = batch
            replies = self.ask(self.agent, batch, len(batch.rows))
            self.teacher.batch_observe(replies)
            self.acts = (batch, replies)
        else:
            live = self._go_on()
            messages = self.heard = [talk.acts[0] for talk in live]
            self.acts = (messages, *self._answer(live))
            self.step += 1

    def _go_on(self) -> List[MultiAgentWorld]:
        """Let every teacher copy that has messages left say its next one.

        RETURNS (List[MultiAgentWorld]): These conversations, which take part in this parley.
        """
        size = self.batcher.sizes.at(self.step)
        live: List[MultiAgentWorld] = []
        n_asked = 0
        for talk in self._talks(size):
            n_asked += 1
            # Check only now: the conversation before may have taken the last episode.
            if not talk._epoch_done():
                self._begin(talk)
                live.append(talk)
                if len(live) == size:
                    break
        # If the batch size has decreased, conversations that had no room are first next time.
        self.rows = self.rows[n_asked:] + self.rows[:n_asked]
        return live

    def _talks(self, size: int) -> Iterator[MultiAgentWorld]:
        """Yield all conversations; new ones begin while there is room and data for them."""
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
        """Drop all conversations."""
        super().reset()
        self.rows = []

    def shutdown(self) -> None:
        """Drop all conversations; the teacher and the agent stay."""
        super().shutdown()
        self.rows = []
