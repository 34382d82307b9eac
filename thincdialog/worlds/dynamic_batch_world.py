"""A world whose conversations wait until messages of similar length can share a batch."""

from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

import numpy as np

from ..batchers import Batcher, Lengths, LiveBuffer, OversizeError
from ..messages import Message
from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .batching import ManyConversations, measure_of
from .multi_agent_world import MultiAgentWorld, PartnerWorld
from .world import World, WorldFactory


@registry.worlds("thincdialog.DynamicBatchWorld.v1")
def build_dynamic_batch_world(
    batcher: Batcher, conversation: Optional[WorldFactory] = None
) -> WorldFactory:
    """Run many conversations whose messages wait for messages of similar length. Batches mix
    conversations, but the messages of a conversation stay in order. (This is ParlAI's dynamic
    batching.)

    batcher (Batcher): Chooses the messages that are answered together.
    conversation (Optional[WorldFactory]): World of each conversation, such as
        "thincdialog.MultiAgentWorld.v1"; null for "thincdialog.PartnerWorld.v1".
    """

    def make_world(teacher: Teacher, agent: Agent) -> World:
        return DynamicBatchWorld((conversation or PartnerWorld)(teacher, agent), batcher)

    return make_world


class DynamicBatchWorld(ManyConversations):
    """Run as many conversations as the batcher's buffer has room for, each of which is a copy of a
    world. Each conversation waits with a message that the agent has observed, but not answered. A
    parley answers a batch of these messages. Then conversations that are not over get their next
    message and wait again, and new conversations begin while there is room.

    Every example is shown once, whatever the batches, because the copies of the teacher share its
    position in the data. ``acts`` holds the agent's observations and its replies.

    world, teacher, agent, batcher: See ``ManyConversations``, also for errors.
    """

    def _get_ready(self) -> None:
        batcher = self.batcher
        self.measure = measure_of(batcher, self.agent)
        # A budget that follows a schedule can decrease while a message waits.
        is_fitted = batcher.unit == "words" and batcher.oversize != "alone"
        self._is_fitted_late = is_fitted and not batcher.sizes.is_constant
        self._seed = [0, 0]
        self.buffer = LiveBuffer(batcher, self._seed)
        self._drop()
        self._forget()

    def _forget(self) -> None:
        step = self.buffer.step
        self.buffer = LiveBuffer(self.batcher, self._seed)
        # Schedules continue at the current step.
        self.buffer.step = step
        # Number of waiting conversations that have more messages after the current one.
        self._n_going = 0
        # Copies can be used for new conversations, unless one of them is in the middle of a
        # conversation.
        if len(self._resting) < len(self._talks):
            self._drop()

    def _drop(self) -> None:
        # Copies of the world by slot, as many as conversations ever ran at the same time.
        self._talks: List[Any] = []
        # Slots of copies whose conversation is over.
        self._resting: List[int] = []

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin a pass over the data, and drop the rest of the last pass."""
        self._seed = [seed & 0xFFFFFFFFFFFFFFFF, epoch]
        super().start_epoch(epoch, seed)

    def _parley(self) -> None:
        buffer = self.buffer
        if not len(buffer):
            # ``missing`` estimates the room from the rows so far, and at most doubles their number.
            while (room := buffer.missing()) > 0 and not self.world._epoch_done():
                self._hear(self._beginning(room))
        more_to_come = self._n_going > 0 or not self.world._epoch_done()
        step = buffer.step
        slots = buffer.next_batch(more_to_come)
        talks = [self._talks[slot] for slot in slots]
        observations = self.heard = [talk.observed[1] for talk in talks]
        if self._is_fitted_late:
            self._fit(observations, self.batcher.sizes.at(step))
        acts = self._answer(talks)
        is_over = [talk.acts[0]["episode_done"] for talk in talks]
        going = [slot for slot, over in zip(slots, is_over) if not over]
        self._resting += [slot for slot, over in zip(slots, is_over) if over]
        self._n_going -= len(going)
        room = buffer.missing() - len(going)
        self._hear(chain(going, self._beginning(room)))
        self.acts = (observations, *acts)

    def _beginning(self, room: int) -> Iterator[int]:
        """Yield the slots of new conversations. Each conversation must take its episode before the
        next slot is requested.

        room (int): Maximum number of new conversations.
        """
        for _ in range(room):
            if self.world._epoch_done():
                return
            if not self._resting:
                self._add()
            yield self._resting.pop()

    def _add(self) -> None:
        self._resting.append(len(self._talks))
        self._talks.append(self.world.clone())

    def _hear(self, slots: Iterable[int]) -> None:
        """Give these slots' conversations their next message, and put them into the buffer."""
        waiting: List[int] = []
        observations = []
        for slot in slots:
            waiting.append(slot)
            observations.append(self._next_message(self._talks[slot]))
        if waiting:
            limit, _ = self.batcher.window(self.buffer.step)
            self.buffer.add(waiting, self._fit(observations, limit))

    def _next_message(self, talk: MultiAgentWorld) -> Message:
        observation = self._begin(talk)
        self._n_going += not talk.acts[0]["episode_done"]
        return observation

    def _fit(self, observations: List[Message], limit: int) -> Lengths:
        """Return the lengths of observations, as far as the agent reads them. An observation that
        must be shortened to the limit gets the field ``max_tokens``.

        RAISES (DataError): If an observation exceeds the limit and the batcher has oversize
            "error".
        """
        lengths = self.measure(observations)
        try:
            fitted = self.batcher.fit(lengths, limit)
        except OversizeError as error:
            name = str(observations[error.row].get("id"))
            raise error.of_example(name, self.teacher.order.origin) from None
        if fitted is not lengths:
            for row in np.flatnonzero((fitted.counts != lengths.counts).any(axis=1)).tolist():
                observations[row]["max_tokens"] = tuple(fitted.counts[row].tolist())
        return fitted

    def _epoch_done(self) -> bool:
        return not len(self.buffer) and self.world._epoch_done()

    def _state(self) -> Dict[str, Any]:
        resting = set(self._resting)
        # Waiting messages are not saved, because the teacher repeats them.
        conversations = [
            [
                slot,
                talk.agents[0].place_of_act(),
                self._conversation_state(talk),
                talk.observed[1].get("max_tokens"),
            ]
            for slot, talk in enumerate(self._talks)
            if slot not in resting
        ]
        return {
            "teacher": self.teacher.state(),
            "seed": self._seed,
            "buffer": self.buffer.state(),
            "conversations": conversations,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._drop()
        conversations = state["conversations"]
        places = [place for _, place, _, _ in conversations]
        copies = self.teacher.restore(state["teacher"], places)
        for copy, (slot, _, known, max_tokens) in zip(copies, conversations):
            while len(self._talks) <= slot:
                self._add()
            talk = self._talks[self._resting.pop()]
            self._take_up(talk, copy, known)
            observation = self._next_message(talk)
            if max_tokens is not None:
                observation["max_tokens"] = tuple(max_tokens)
        self._seed = state["seed"]
        self.buffer = LiveBuffer(self.batcher, self._seed)
        self.buffer.restore(state["buffer"])

    def reset(self) -> None:
        """Drop all conversations, and make all agents forget theirs."""
        super().reset()
        self._forget()

    def shutdown(self) -> None:
        """Drop all conversations. The teacher and the agent stay usable."""
        super().shutdown()
        self._drop()
        self._forget()
