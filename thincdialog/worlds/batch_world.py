"""A world that answers many conversations in batches, without copies if the data allows it."""

from functools import partial
from typing import Optional

from ..batchers import Batcher
from ..registry import registry
from .dynamic_batch_world import DynamicBatchWorld, of_agents
from .multi_agent_world import PartnerWorld
from .world import WorldFactory


@registry.worlds("thincdialog.BatchWorld.v1")
def build_batch_world(
    batcher: Batcher, conversation: Optional[WorldFactory] = None
) -> WorldFactory:
    """Run many conversations at once, and answer their messages in batches.

    batcher (Batcher): Chooses the messages that are answered together.
    conversation (Optional[WorldFactory]): World of each conversation, such as
        "thincdialog.MultiAgentWorld.v1"; null for "thincdialog.PartnerWorld.v1".
    RAISES (ValueError): If the world of a conversation is another kind of world.
    """
    return partial(BatchWorld, batcher=batcher, conversation=of_agents(conversation))


class BatchWorld(DynamicBatchWorld):
    """Run as many conversations as the batcher chooses from. One ``batch_act()`` of the original
    agent answers a batch of them; if the agent has none, its copies answer one by one.

        BatchWorld(teacher, agent, Fixed(32))
        BatchWorld(MultiAgentWorld([teacher, agent, another]), Fixed(32))

    Each conversation is a copy of a world, as in a ``DynamicBatchWorld``. There are no copies if a
    teacher talks with a single agent, every example is a conversation of its own, and the agent
    ``takes_batches``: then the batcher chooses whole batches, which the teacher passes to the
    agent.

    world, teacher, agent, batcher: See ``DynamicBatchWorld``, also for errors.
    """

    def _prepare(self) -> None:
        super()._prepare()
        agent, is_of_two = self.agent, type(self.world) is PartnerWorld
        can_take = is_of_two and agent.can_batch and agent.takes_batches
        self.has_whole_batches = can_take and self.teacher.is_single_turn
        if self.has_whole_batches:
            self.teacher.set_batches(self.batcher, agent.batch_lengths)

    def _parley(self) -> None:
        if not self.has_whole_batches:
            super()._parley()
            return
        batch = self.teacher.batch_act()
        self.heard = batch
        replies = self.agent.batch_act(batch)
        self.teacher.batch_observe(replies)
        self.acts = (batch, replies)

    def _epoch_done(self) -> bool:
        return self.teacher.epoch_done() if self.has_whole_batches else super()._epoch_done()
