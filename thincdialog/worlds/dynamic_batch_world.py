"""Many conversations of which each waits until its next message finds good company."""

from functools import partial
from itertools import chain
from typing import Any, Dict, Iterable, Iterator, List, Mapping

from ..batchers import Batcher, Lengths, LiveBuffer
from ..messages import Message
from ..protocol import Agent, can_batch
from ..registry import registry
from ..teachers.teacher import Teacher
from .batching import check_oversize, fit_rows, measure_of
from .world import World, WorldFactory


@registry.worlds("thincdialog.DynamicBatchWorld.v1")
def build_dynamic_batch_world(batcher: Batcher) -> WorldFactory:
    """Conversations wait for company of like length; each keeps its own order, while
    batches mix them. (ParlAI's dynamic batching.)

    batcher (Batcher): Which messages are answered together.
    """

    return partial(DynamicBatchWorld, batcher=batcher)


class DynamicBatchWorld(World):
    """As many conversations as the batcher's buffer has room for, each between a copy of
    the teacher and a copy of the agent. Each waits with a message that was heard and not
    answered. A parley answers one batch of them; those that go on hear their next message
    and wait again, and new ones begin while there is room.

    So every example is shown once, whatever the batches: the copies of the teacher share
    its place in the data. ``acts`` are what the agent observed, and its replies.

    teacher (Teacher): Where the messages come from.
    agent (Agent): Who answers.
    batcher (Batcher): Which messages are answered together.
    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    """

    def __init__(self, teacher: Teacher, agent: Agent, batcher: Batcher):
        check_oversize(batcher, agent)
        super().__init__([teacher, agent])
        self.teacher = teacher
        self.agent = agent
        self.batcher = batcher
        self.has_batch_act = can_batch(agent)
        self.measure = measure_of(batcher, agent)
        # Where budgets change, a row can have waited until less is allowed.
        is_fitted = batcher.unit == "words" and batcher.oversize != "alone"
        self._is_fitted_late = is_fitted and not batcher.sizes.is_constant
        self._seed = [0, 0]
        self.buffer = LiveBuffer(batcher, self._seed)
        self._drop()
        self._forget()

    def _forget(self) -> None:
        step = self.buffer.step
        self.buffer = LiveBuffer(self.batcher, self._seed)
        # Schedules go on.
        self.buffer.step = step
        # Conversations that wait and will go on.
        self._n_going = 0
        # Copies of which none is in the middle of a conversation can begin others.
        if len(self._resting) < len(self._teachers):
            self._drop()

    def _drop(self) -> None:
        # One entry for each conversation that there ever was room for.
        self._teachers: List[Teacher] = []
        self._agents: List[Agent] = []
        self._heard: List[Message] = []
        self._is_last: List[bool] = []
        # Those that are over; their copies take the next episode when there is room.
        self._resting: List[int] = []

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin a pass over the data, whatever is left of the last one."""
        self._seed = [seed & 0xFFFFFFFFFFFFFFFF, epoch]
        super().start_epoch(epoch, seed)

    def _parley(self) -> None:
        buffer = self.buffer
        if not len(buffer):
            self._fill()
        more_to_come = self._n_going > 0 or not self.teacher.epoch_done()
        step = buffer.step
        slots = buffer.next_batch(more_to_come)
        observations = self.heard = [self._heard[slot] for slot in slots]
        if self._is_fitted_late:
            self._fit(observations, self.batcher.sizes.at(step))
        teachers, agents, is_last = self._teachers, self._agents, self._is_last
        if self.has_batch_act:
            replies = self.ask(self.agent, observations)
        else:
            replies = [agents[slot].act() for slot in slots]
        for slot, reply in zip(slots, replies):
            teachers[slot].observe(reply)
            agents[slot].self_observe(reply)
        going = [slot for slot in slots if not is_last[slot]]
        self._resting += [slot for slot in slots if is_last[slot]]
        self._n_going -= len(going)
        room = buffer.missing() - len(going)
        self._hear(chain(going, self._beginning(room)))
        self.acts = (observations, replies)

    def _fill(self) -> None:
        """Begin conversations while there is room."""
        room = self.buffer.missing()
        while room > 0 and not self.teacher.epoch_done():
            self._hear(self._beginning(room))
            room = self.buffer.missing()

    def _beginning(self, room: int) -> Iterator[int]:
        """Conversations that begin. Each has to take its episode before the next one is
        asked for."""
        resting, epoch_done = self._resting, self.teacher.epoch_done
        for _ in range(room):
            if epoch_done():
                return
            yield resting.pop() if resting else self._new()

    def _new(self) -> int:
        self._teachers.append(self.teacher.clone())
        self._agents.append(self.agent.clone())
        self._heard.append(_NOTHING)
        self._is_last.append(True)
        return len(self._teachers) - 1

    def _hear(self, slots: Iterable[int]) -> None:
        """These conversations hear their next message, and wait."""
        waiting = []
        observations = []
        for slot in slots:
            waiting.append(slot)
            observations.append(self._next_message(slot))
        if not waiting:
            return
        limit, _ = self.batcher.window(self.buffer.step)
        self.buffer.add(waiting, self._fit(observations, limit))

    def _fit(self, observations: List[Message], limit: int) -> Lengths:
        lengths = self.measure(observations)
        return fit_rows(self.batcher, lengths, limit, observations, self.teacher)

    def _next_message(self, slot: int) -> Message:
        message = self._teachers[slot].act()
        self._is_last[slot] = is_over = message["episode_done"]
        self._n_going += not is_over
        self._heard[slot] = observation = self._agents[slot].observe(message)
        return observation

    def _epoch_done(self) -> bool:
        return not len(self.buffer) and self.teacher.epoch_done()

    def _state(self) -> Dict[str, Any]:
        resting = set(self._resting)
        # The messages that wait are not saved: the teacher says them again.
        conversations = [
            [
                slot,
                self._teachers[slot].place_of_act(),
                self._agents[slot].conversation_state(),
                self._heard[slot].get("max_tokens"),
            ]
            for slot in range(len(self._teachers))
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
            while len(self._teachers) <= slot:
                self._resting.append(self._new())
            self._resting.pop()
            self._teachers[slot] = copy
            self._agents[slot].set_conversation_state(known)
            observation = self._next_message(slot)
            if max_tokens is not None:
                observation["max_tokens"] = tuple(max_tokens)
        self._seed = state["seed"]
        self.buffer = LiveBuffer(self.batcher, self._seed)
        self.buffer.restore(state["buffer"])

    def reset(self) -> None:
        """Drop all conversations."""
        super().reset()
        self._forget()

    def shutdown(self) -> None:
        """Drop all conversations; the teacher and the agent stay."""
        super().shutdown()
        self._drop()
        self._forget()


_NOTHING = Message()
