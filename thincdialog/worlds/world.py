"""The base class of worlds, which decide when agents act. A world never computes with numbers."""

from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar

import numpy

from ..contract import Contract, Returned, has_run, is_kind, is_mapping, watching
from ..errors import ProtocolError
from ..messages import Message, column
from ..metrics import Metric
from ..protocol import Agent
from ..registry import registry
from ..teachers.multi_task import MultiTask
from ..teachers.teacher import Teacher
from .display import Speaker, display_acts

WorldT = TypeVar("WorldT", bound="World")


class World(Contract):
    """Run agents that talk with each other, one ``parley()`` after the other. A subclass defines
    ``_parley()`` and ``_epoch_done()``.

    The caller owns the agents; a world shuts down only the copies that it made.

    agents (Sequence[Agent]): The agents that take part.
    acts (Sequence): The acts of the last parley, for display. For each agent, they hold a message
        or, in worlds of many conversations, a sequence of messages.
    heard (Sequence[Message]): The messages that the last parley answered, or was about to answer
        when it failed.
    """

    returns = {
        "share": Returned("a dict", is_mapping),
        "_parley": Returned("nothing, and not yield", has_run),
        "_epoch_done": Returned("True or False", is_kind(bool, numpy.bool_)),
    }

    def __init__(self, agents: Sequence[Agent]):
        self.agents = list(agents)
        self._n_parleys = 0
        self.acts: Sequence = ()
        self.heard: Sequence[Message] = ()
        self.is_shut_down = False
        self._learning = [_UpdateWatch(agent) for agent in self.agents if agent.learns]

    def parley(self) -> None:
        """Make one exchange: every agent acts once, and the others observe its act.

        RAISES (ProtocolError): If the epoch is done, or after ``shutdown()``.
        """
        name = type(self).__name__
        if self.is_shut_down:
            raise ProtocolError(f"{name}.parley() was called after shutdown().")
        if self.epoch_done():
            raise ProtocolError(
                f"{name}.parley() was called, but the epoch is done: call start_epoch() first."
            )
        self._n_parleys += 1
        self.heard = ()
        for learning in self._learning:
            learning.look()
        self.parley_init()
        self._parley()
        for learning in self._learning:
            learning.look()

    def parley_init(self) -> None:
        """Prepare a parley, for example by choosing a topic in a custom world. This is called at
        the beginning of each parley; in batches, for each copy of the world. (The task is chosen by
        a teacher, see ``MultiTask``.)"""

    def _parley(self) -> None:
        raise NotImplementedError

    def epoch_done(self) -> bool:
        """Return whether all examples of the epoch have been answered."""
        return bool(self._epoch_done())

    def _epoch_done(self) -> bool:
        raise NotImplementedError

    def at_hand(self) -> List[str]:
        """Return the ids of the examples of the last parley, for error messages. If the parley
        failed, these are the examples that it had reached."""
        return [str(id) for id in column(self.heard, "id") if id is not None]

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin a pass over the data, and drop the rest of the last pass.

        epoch (int): Number of the epoch, from 0.
        seed (int): Seed that, together with the epoch, fixes the order of training examples.
        RAISES (ProtocolError): If an agent trained for the whole previous epoch, but its weights
            were never updated. (Leaving ``with world`` checks this, too.)
        """
        for learning in self._learning:
            # Before the first parley, epoch_done() would read from a stream unnecessarily.
            if self._n_parleys and self.epoch_done():
                learning.check()
            learning.begin_epoch()
        self._n_parleys = 0
        self.reset()
        for agent in self.agents:
            if isinstance(agent, Teacher):
                agent.start_epoch(epoch, seed)

    def state(self) -> Dict[str, Any]:
        """Return the state of the epoch and all conversations, as JSON values. Call this between
        parleys. ``restore()`` continues from the state, in this or another process, with the same
        examples in the same order, if the data and the agent's weights are the same.

        RAISES (ProtocolError): If this kind of world cannot be saved.
        """
        return {"world": type(self).__name__, **self._state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, and drop all current conversations.

        state (Mapping[str, Any]): A result of ``state()`` of a world of the same class.
        RAISES (ProtocolError): If the state is from a world of another class.
        RAISES (DataError): If the data does not have the position of the state.
        """
        name = type(self).__name__
        if state["world"] != name:
            raise ProtocolError(f"{name}.restore() was given the state of a {state['world']}.")
        self.reset()
        self._restore(state)

    def _state(self) -> Dict[str, Any]:
        raise ProtocolError(
            f"{type(self).__name__}.state(): this kind of world cannot be saved during an epoch."
        )

    def _restore(self, state: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def share(self) -> Dict[str, Any]:
        """Return the attributes that copies share with the original. Agents among them are replaced
        by their copies."""
        return dict(self.__dict__)

    def clone(self: WorldT) -> WorldT:
        """Return a copy of this world for another conversation, with the attributes of ``share()``
        and copies of the agents."""
        copy = object.__new__(type(self))
        agents = {id(agent): agent.clone() for agent in self.agents}
        for name, value in self.share().items():
            setattr(copy, name, agents.get(id(value), value))
        copy.agents = list(agents.values())
        return copy

    def display(self, most: int = 10) -> str:
        """Return the last parley as text: the speakers, their texts and the right replies.

        most (int): Maximum number of conversations of a batch that are shown.
        """
        return display_acts([_speaker(agent) for agent in self.agents], self.acts, most)

    def report(self) -> Dict[str, Metric]:
        """Return the metrics of all agents since ``reset_metrics()``. If two agents report a metric
        of the same name, that of the first agent counts.

        A training agent reports the loss and, if it computes it, the accuracy among the candidates
        or classes of training. A teacher adds its metrics (see ``Teacher.set_metrics``); with
        several tasks, also those of each task, and its loss (``<task>/loss``)."""
        return merged_report(self.agents)

    def reset_metrics(self) -> None:
        """Reset the metrics of all agents."""
        for agent in self.agents:
            agent.reset_metrics()

    def reset(self) -> None:
        """Make all agents forget their conversations."""
        self.acts = self.heard = ()
        for agent in self.agents:
            agent.reset()

    def shutdown(self) -> None:
        """Release the copies that this world made. Calling this again does nothing."""
        self.is_shut_down = True

    def __enter__(self: WorldT) -> WorldT:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        is_done = kind is None and not self.is_shut_down and self.epoch_done()
        self.shutdown()
        for learning in self._learning if is_done else ():
            learning.check()


def _speaker(agent: Agent) -> Speaker:
    """Return the function that names the speaker of an agent's messages. For a teacher of several
    tasks, the function returns the name of the task."""
    if isinstance(agent, MultiTask):
        return agent.task_of
    return lambda message: str(message.get("agent") or agent.id)


def merged_report(agents: Sequence[Agent]) -> Dict[str, Metric]:
    """Merge the metrics of agents. If two agents report the same name, the first agent counts."""
    report: Dict[str, Metric] = {}
    for agent in reversed(agents):
        report.update(agent.report())
    return report


class _UpdateWatch:
    """Watch whether the weights of an agent are updated during an epoch.

    agent (Learner): The agent to watch.
    """

    def __init__(self, agent: Agent):
        self.agent: Any = agent
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Begin an epoch. Examples that the agent has already gathered do not count."""
        self._at_first = self._gathered = self.agent.n_gathered
        self._is_updated = False

    def look(self) -> None:
        """Notice an update since the last call. Call this before and after each parley."""
        # A parley can only increase ``n_gathered``; an update resets it to 0.
        if not self._is_updated:
            before, self._gathered = self._gathered, self.agent.n_gathered
            self._is_updated = self._gathered < before

    def check(self) -> None:
        """Check, after an epoch, that the weights were updated.

        RAISES (ProtocolError): If the agent trained on examples without an update.
        """
        self.look()
        n_trained = self._gathered - self._at_first
        if n_trained and not self._is_updated:
            raise ProtocolError(
                f"{self.agent.id} trained on {n_trained:,} examples, a whole epoch, but its "
                "weights were never updated: call agent.update(optimizer) after world.parley()."
            )


# Function that a registered builder of worlds returns: (teacher, agent) -> World.
WorldFactory = Callable[[Teacher, Agent], World]


registry.worlds.makes(WorldFactory, watching(Returned("a World", is_kind(World))))
