"""A world whose conversations wait until messages of similar length can share a batch."""

from functools import partial
from heapq import heappop, heappush
from itertools import chain
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    overload,
)

import numpy as np

from ..batchers import Batcher, Lengths, LiveBuffer
from ..errors import ConfigError, Problem, ProtocolError
from ..messages import Message
from ..metrics import Metric
from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .multi_agent_world import MultiAgentWorld, PartnerWorld
from .world import World, WorldFactory

_WANTED = "a PartnerWorld or a MultiAgentWorld (or a class derived from one, with the same _parley)"


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
    RAISES (ValueError): If the world of a conversation is another kind of world.
    """
    return partial(DynamicBatchWorld, batcher=batcher, conversation=of_agents(conversation))


def of_agents(conversation: Optional[WorldFactory]) -> WorldFactory:
    """Return the world of each conversation, by default a ``PartnerWorld``.

    RAISES (ValueError): If it is a world whose copies cannot run.
    """
    kind = getattr(conversation, "func", conversation)  # A partial class is checked as the class.
    if isinstance(kind, type) and not _has_turns(kind):
        raise ValueError(f"conversation is a {kind.__name__}, expected {_WANTED}")
    return conversation or PartnerWorld


def _has_turns(kind: type) -> bool:
    return getattr(kind, "_parley", None) is MultiAgentWorld._parley


class DynamicBatchWorld(World):
    """Run as many conversations as the batcher's buffer has room for, each of which is a copy of a
    world. Each conversation waits with a message that the agent has observed, but not answered. A
    parley answers a batch of these messages. Then conversations that are not over get their next
    message and wait again, and new conversations begin while there is room.

    Every example is shown once, whatever the batches, because the copies of the teacher share its
    position in the data. ``acts`` holds the messages of the teacher, and the replies of each agent.

    world (World): The world to copy: a ``MultiAgentWorld``, a ``PartnerWorld``, or a world derived
        from one of these that keeps its ``_parley()``. Its first agent is a teacher.
    teacher, agent: Pass a teacher and an agent instead of a world to copy a ``PartnerWorld``.
    batcher (Batcher): Chooses the conversations of each batch.
    conversation (WorldFactory): Class of the world of a teacher and an agent, if these are passed.
    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    RAISES (ProtocolError): If ``world`` is another kind of world.
    """

    @overload
    def __init__(self, world: World, /, batcher: Batcher): ...

    @overload
    def __init__(
        self, teacher: Teacher, agent: Agent, /, batcher: Batcher, *, conversation: Any = ...
    ): ...

    def __init__(self, *of: Any, batcher: Any = None, conversation: WorldFactory = PartnerWorld):
        parts = list(of)
        self.batcher: Batcher = parts.pop() if batcher is None else batcher
        own = type(self).__name__
        if not isinstance(self.batcher, Batcher):
            raise TypeError(f"{own} needs a batcher, such as Fixed(32), as its last argument")
        world = parts[0] if len(parts) == 1 else conversation(*parts)
        kind = type(world)
        if not _has_turns(kind) or not isinstance(world.agents[0], Teacher):
            text = f"{own} cannot run copies of this {kind.__name__}: it needs {_WANTED} whose "
            raise ProtocolError(f"{text}first agent is a teacher.")
        super().__init__(world.agents)
        self.world: Any = world
        self.teacher: Teacher = world.agents[0]
        self.agent: Agent = world.agents[1]
        self._prepare()

    def _prepare(self) -> None:
        """Prepare this world, which has no conversations yet."""
        batcher = self.batcher
        in_words = batcher.unit == "words"
        if in_words and batcher.oversize == "truncate" and not self.agent.can_truncate:
            text = 'the batcher has oversize = "truncate", but '
            text += f"{self.agent.id} cannot shorten what it reads"
            where = "[world.batcher] (or [evaluation.world.batcher])"
            raise ConfigError([Problem("", text, f'set it to "alone" or "error" in {where}')])
        # A budget that follows a schedule can decrease while a message waits.
        is_fitted = in_words and batcher.oversize != "alone"
        self._is_fitted_late = is_fitted and not batcher.sizes.is_constant
        self._seed = [0, 0]
        self.buffer = LiveBuffer(batcher, self._seed)
        # Copies of the world by slot. Their number is the largest number of conversations that have
        # run at the same time.
        self._talks: List[Any] = []
        # Slots of copies whose conversation is over, as a heap: the lowest is used next. So the
        # running conversations determine the next slot, also in a restored world.
        self._resting: List[int] = []
        self._drop_conversations()

    def _drop_conversations(self) -> None:
        """Drop all conversations."""
        # Copies can be used again, unless one of them is in the middle of a conversation.
        if len(self._resting) < len(self._talks):
            self._talks, self._resting = [], []
        self._resting.sort()
        # Number of waiting conversations that have more messages after the current one.
        self._n_going = 0
        # Schedules continue at the current step.
        step = self.buffer.step
        self.buffer = LiveBuffer(self.batcher, self._seed)
        self.buffer.step = step

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin a pass over the data, and drop the rest of the last pass."""
        self._seed = [seed & 0xFFFFFFFFFFFFFFFF, epoch]
        super().start_epoch(epoch, seed)

    def _parley(self) -> None:
        buffer = self.buffer
        if not len(buffer):
            # ``missing`` estimates the room from the rows so far, and at most doubles their number.
            while (room := buffer.missing()) > 0 and not self.world._epoch_done():
                self._observe_next(self._beginning(room))
        more_to_come = self._n_going > 0 or not self.world._epoch_done()
        step = buffer.step
        slots = buffer.next_batch(more_to_come)
        if not self.batcher.needs_lengths:
            slots.sort()  # Each conversation keeps its place in the batches.
        talks = [self._talks[slot] for slot in slots]
        messages = self.heard = [talk.acts[0] for talk in talks]
        if self._is_fitted_late:
            self._fitted_lengths([talk.observed[1] for talk in talks], self.batcher.sizes.at(step))
        replies = self._answer(talks)
        going = []
        for slot, message in zip(slots, messages):
            if message["episode_done"]:
                heappush(self._resting, slot)
            else:
                going.append(slot)
        self._n_going -= len(going)
        room = buffer.missing() - len(going)
        self._observe_next(chain(going, self._beginning(room)))
        self.acts = (messages, *replies)

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
            yield heappop(self._resting)

    def _add(self) -> None:
        heappush(self._resting, len(self._talks))
        self._talks.append(self.world.clone())

    def _observe_next(self, slots: Iterable[int]) -> None:
        """Let the conversations of these slots observe their next message, and put them into the
        buffer."""
        waiting: List[int] = []
        observations = []
        for slot in slots:
            waiting.append(slot)
            observations.append(self._next_message(self._talks[slot]))
        if waiting:
            limit, _ = self.batcher.window(self.buffer.step)
            self.buffer.add(waiting, self._fitted_lengths(observations, limit))

    def _next_message(self, talk: MultiAgentWorld) -> Message:
        """Make the teacher of a conversation say its next message.

        RETURNS (Message): The agent's observation of the message.
        """
        talk.parley_init()
        message = talk.observe(0, talk.agents[0].act())
        self._n_going += not message["episode_done"]
        return talk.observed[1]

    def _answer(self, talks: Sequence[MultiAgentWorld]) -> List[Sequence[Message]]:
        """Make all agents except the teacher act, one after the other. An agent that can answers
        all conversations at once.

        talks (Sequence[MultiAgentWorld]): The conversations.
        RETURNS (List[Sequence[Message]]): For each of these agents, its acts.
        """
        acts: List[Sequence[Message]] = []
        for place, agent in list(enumerate(self.agents))[1:]:
            if agent.can_batch and not isinstance(agent, Teacher):
                replies = agent.batch_act([talk.observed[place] for talk in talks])
            else:
                replies = [talk.agents[place].act() for talk in talks]
            acts.append([talk.observe(place, reply) for talk, reply in zip(talks, replies)])
        return acts

    def _fitted_lengths(self, observations: List[Message], limit: int) -> Lengths:
        """Return the lengths of observations, as far as the agent reads them. An observation that
        must be shortened to the limit gets the field ``max_tokens``.

        RAISES (DataError): If an observation exceeds the limit and the batcher has oversize
            "error".
        """
        if not self.batcher.needs_lengths:
            return Lengths(np.zeros((len(observations), 1), dtype=np.int64), (False,))
        lengths = self.agent.batch_lengths(observations)
        id_of = lambda row: observations[row].get("id")  # noqa: E731
        fitted = self.batcher.fit(lengths, limit, id_of, self.teacher.order.origin)
        if fitted is not lengths:
            for row in np.flatnonzero((fitted.counts != lengths.counts).any(axis=1)).tolist():
                observations[row]["max_tokens"] = tuple(fitted.counts[row].tolist())
        return fitted

    def _epoch_done(self) -> bool:
        return not len(self.buffer) and self.world._epoch_done()

    def _state(self) -> Dict[str, Any]:
        conversations, resting = [], set(self._resting)
        for slot, talk in enumerate(self._talks):
            if slot in resting:
                continue
            if not isinstance(talk, PartnerWorld):
                return super()._state()  # Raises an error.
            # Waiting messages are not saved, because the teacher repeats them.
            place, known = talk.teacher.place_of_act(), talk.agent.conversation_state()
            conversations.append([slot, place, known, talk.observed[1].get("max_tokens")])
        return {
            "teacher": self.teacher.state(),
            "seed": self._seed,
            "buffer": self.buffer.state(),
            "conversations": conversations,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._talks, self._resting = [], []
        conversations = state["conversations"]
        places = [place for _, place, _, _ in conversations]
        copies = self.teacher.restore(state["teacher"], places)
        for copy, (slot, _, known, max_tokens) in zip(copies, conversations):
            while len(self._talks) <= slot:
                self._add()
            talk = self._talks[self._resting.pop()]
            talk.agents[0] = talk.teacher = copy
            talk.agent.set_conversation_state(known)
            observation = self._next_message(talk)
            if max_tokens is not None:
                observation["max_tokens"] = tuple(max_tokens)
        self._seed = state["seed"]
        self.buffer = LiveBuffer(self.batcher, self._seed)
        self.buffer.restore(state["buffer"])

    def report(self) -> Dict[str, Metric]:
        """Return the report of the original world (see ``World.report()``)."""
        return self.world.report()

    def reset(self) -> None:
        """Drop all conversations, and make all agents forget theirs."""
        super().reset()
        self._drop_conversations()

    def shutdown(self) -> None:
        """Drop all conversations. The teacher and the agent stay usable."""
        super().shutdown()
        self._talks, self._resting = [], []
        self._drop_conversations()
