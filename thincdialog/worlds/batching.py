"""The base class of worlds that answer conversations in batches, and checks of agents for it."""

from typing import Any, Dict, List, Sequence, overload

import numpy as np

from ..batchers import Batcher, Lengths
from ..errors import ConfigError, Problem, ProtocolError
from ..examples.windows import Measure
from ..messages import Message
from ..metrics import Metric
from ..protocol import Agent
from ..teachers.teacher import Teacher
from .multi_agent_world import MultiAgentWorld, PartnerWorld
from .world import World


class ManyConversations(World):
    """Serve as the base class of worlds that answer many conversations in batches. Each
    conversation is a copy of one world.

    world (World): The world to copy: a ``MultiAgentWorld``, a ``PartnerWorld``, or a world derived
        from one of these that keeps its ``_parley()``. Its first agent is a teacher.
    teacher, agent: Pass a teacher and an agent instead of a world to copy a ``PartnerWorld``.
    batcher (Batcher): Chooses the conversations of each batch.
    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    RAISES (ProtocolError): If ``world`` is another kind of world.
    """

    @overload
    def __init__(self, world: World, /, batcher: Batcher): ...

    @overload
    def __init__(self, teacher: Teacher, agent: Agent, /, batcher: Batcher): ...

    def __init__(self, *of: Any, **batcher: Batcher):
        parts: List[Any] = [*of, *batcher.values()]
        self.batcher: Batcher = parts.pop()
        own = type(self).__name__
        if not isinstance(self.batcher, Batcher):
            raise TypeError(f"{own} needs a batcher, such as Fixed(32), as its last argument")
        world = parts[0] if len(parts) == 1 else PartnerWorld(*parts)
        kind = type(world)
        is_known = getattr(kind, "_parley", None) is MultiAgentWorld._parley
        if not is_known or not isinstance(world.agents[0], Teacher):
            raise ProtocolError(
                f"{own} cannot run copies of this {kind.__name__}: it needs a PartnerWorld or a "
                "MultiAgentWorld (or a class derived from one, with the same _parley) whose first "
                "agent is a teacher."
            )
        super().__init__(world.agents)
        self.world: Any = world
        self.teacher: Teacher = world.agents[0]
        self.agent: Agent = world.agents[1]
        check_oversize(self.batcher, self.agent)
        self._get_ready()

    def _get_ready(self) -> None:
        """Prepare this world, which has no conversations yet."""
        raise NotImplementedError

    def _begin(self, talk: MultiAgentWorld) -> Message:
        """Make the teacher of a conversation say its next message.

        RETURNS (Message): The agent's observation of the message.
        """
        talk.parley_init()
        talk.observe(0, talk.agents[0].act())
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

    def _conversation_state(self, talk: MultiAgentWorld) -> Any:
        """Return the state of a conversation, without its teacher's position in the data."""
        if not isinstance(talk, PartnerWorld):
            return super()._state()
        return talk.agent.conversation_state()

    @staticmethod
    def _take_up(talk: Any, teacher: Teacher, known: Any) -> None:
        """Restore the state of a conversation.

        talk (MultiAgentWorld): A copy of the world.
        teacher (Teacher): A copy of the teacher that is already restored.
        known (Any): A result of ``_conversation_state()``.
        """
        talk.agents[0] = talk.teacher = teacher
        talk.agent.set_conversation_state(known)

    def report(self) -> Dict[str, Metric]:
        """Return the report of the original world (see ``World.report()``)."""
        return self.world.report()


def measure_of(batcher: Batcher, agent: Agent) -> Measure:
    """Return a function that returns the lengths of observations: those that the agent reads, or
    zeros if the batcher does not use lengths.

    batcher (Batcher): The batcher of the world.
    agent (Agent): The agent that answers.
    """
    if batcher.needs_lengths:
        return agent.batch_lengths
    return lambda rows: Lengths(np.zeros((len(rows), 1), dtype=np.int64), (False,))


def check_oversize(batcher: Batcher, agent: Agent) -> None:
    """Check that the agent can shorten observations, if the batcher requires it.

    RAISES (ConfigError): If the batcher truncates and the agent cannot.
    """
    if batcher.unit == "words" and batcher.oversize == "truncate" and not agent.can_truncate:
        text = f'the batcher has oversize = "truncate", but {agent.id} cannot shorten what it reads'
        where = "[world.batcher] (or [evaluation.world.batcher])"
        raise ConfigError([Problem("", text, f'set it to "alone" or "error" in {where}')])
