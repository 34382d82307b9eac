"""Worlds of one conversation at a time: of a teacher and an agent, or of more agents."""

from functools import partial
from typing import Any, Dict, List, Mapping, Sequence

from ..errors import ConfigError, Problem
from ..messages import Message
from ..metrics import Metric
from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .world import World, WorldFactory, merged_report


@registry.worlds("thincdialog.MultiAgentWorld.v1")
def build_multi_agent_world(others: Mapping[str, Agent]) -> WorldFactory:
    """Run one conversation at a time between the teacher, the agent of ``[agent]`` and other
    agents. They speak in turn, and each observes all others. The agent of ``[agent]`` answers
    first, and the teacher scores it. Metrics of the other agents are called ``<name>/<metric>``.

    others (Mapping[str, Agent]): Agents that do not learn, in sections ``[world.others.NAME]``, in
        the order of their turns.
    RAISES (ConfigError): If there are no other agents, or if one of them learns.
    """
    if not others:
        hint = "add a section [world.others.NAME] with @agents"
        raise ConfigError([Problem("", "[world] has no other agent to talk with", hint)])
    for name, other in others.items():
        if type(other).initialize is not Agent.initialize:
            text = f"[world.others.{name}] learns from training data"
            hint = "choose one that does not, such as thincdialog.FixedResponse.v1"
            raise ConfigError([Problem("", text, hint)])
    return partial(_with_others, others=others)


def _with_others(teacher: Teacher, agent: Agent, others: Mapping[str, Agent]) -> World:
    copies = {name: other.clone() for name, other in others.items()}
    for name, copy in copies.items():
        copy.id = name
    return MultiAgentWorld([teacher, agent, *copies.values()], n_plain=2)


class MultiAgentWorld(World):
    """Run agents that speak in turn: each acts once in a parley, and all others observe the act
    before the next agent acts.

    The first agent acts before it has observed anything. Every message gets the field ``agent``
    with the id of its speaker, and a number if several agents have the same id. After a parley with
    an ``episode_done`` message, all agents except teachers forget the conversation. ``BatchWorld``
    and ``DynamicBatchWorld`` run copies of a ``MultiAgentWorld``.

    agents (Sequence[Agent]): Two or more agents, in the order of their turns.
    n_plain (int): Number of agents, from the first, whose metrics are reported without the name of
        the agent, as in a world of two agents.
    observed (Sequence[Message]): The last observation of each agent in this parley, as
        ``Agent.observe()`` returned it.
    RAISES (ValueError): If there are fewer than two agents, or if an agent is given twice.
    """

    def __init__(self, agents: Sequence[Agent], n_plain: int = 0):
        if len(agents) < 2:
            raise ValueError(f"MultiAgentWorld needs two agents or more, got {len(agents)}")
        if len(set(map(id, agents))) < len(agents):
            raise ValueError("MultiAgentWorld got the same agent twice: give it a clone()")
        super().__init__(agents)
        self.names = _unique_names(agents)
        self.n_plain = n_plain
        self.observed: Sequence[Message] = ()

    def _parley(self) -> None:
        for place, speaker in enumerate(self.agents):
            message = speaker.act()
            if place == 0:
                self.heard = [message]
            self.observe(place, message)

    def observe(self, place: int, message: Message) -> Message:
        """Make all other agents observe an act of the agent at ``place``, which records the act as
        its own.

        place (int): Position of the speaker in ``agents``.
        message (Message): The act.
        RETURNS (Message): The act as the others observed it.
        """
        message = Message(message, agent=self.names[place])
        self.acts = (message,) if place == 0 else (*self.acts, message)
        speaker = self.agents[place]
        self.observed = [
            message if listener is speaker else listener.observe(message)
            for listener in self.agents
        ]
        if speaker.observation is not None:
            speaker.self_observe(message)
        if place == len(self.agents) - 1 and any(act.get("episode_done") for act in self.acts):
            # Forget messages after the last answer: they must not open the next conversation.
            for agent in self.agents:
                if not isinstance(agent, Teacher):
                    agent.reset()
        return message

    def _epoch_done(self) -> bool:
        return any(agent.epoch_done() for agent in self.agents if isinstance(agent, Teacher))

    def report(self) -> Dict[str, Metric]:
        """Return the metrics of all agents. Their names are ``<agent>/<metric>``, or ``<metric>``
        for the first ``n_plain`` agents."""
        named = {
            f"{name}/{key}": metric
            for agent, name in list(zip(self.agents, self.names))[self.n_plain :]
            for key, metric in agent.report().items()
        }
        return {**merged_report(self.agents[: self.n_plain]), **named}


@registry.worlds("thincdialog.PartnerWorld.v1")
def build_partner_world() -> WorldFactory:
    """Run one conversation at a time, for display, debugging and comparison."""
    return PartnerWorld


class PartnerWorld(MultiAgentWorld):
    """Run a conversation of a teacher and an agent: in a parley, the teacher acts, the agent
    observes the act and answers, and the teacher observes the answer. Messages are not changed.

    teacher (Teacher): The agent whose messages come from data.
    agent (Agent): The agent that answers.
    """

    def __init__(self, teacher: Teacher, agent: Agent):
        super().__init__([teacher, agent], n_plain=2)
        self.teacher = teacher
        self.agent = agent

    def observe(self, place: int, message: Message) -> Message:
        """Make the partner of the speaker at ``place`` observe an act. An agent that answers also
        records the act as its own.

        place (int): 0 for the teacher, 1 for the agent.
        message (Message): The act.
        RETURNS (Message): The act.
        """
        if place == 0:
            self.acts = (message,)
            self.observed = (message, self.agent.observe(message))
        else:
            self.acts = (*self.acts, message)
            self.teacher.observe(message)
            self.agent.self_observe(message)
        return message

    def _epoch_done(self) -> bool:
        return self.teacher.epoch_done()

    def _state(self) -> Dict[str, Any]:
        return {"teacher": self.teacher.state(), "agent": self.agent.conversation_state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.teacher.restore(state["teacher"])
        self.agent.set_conversation_state(state["agent"])


def _unique_names(agents: Sequence[Agent]) -> List[str]:
    ids = [agent.id for agent in agents]
    return [
        name if ids.count(name) == 1 else f"{name}_{ids[:place].count(name) + 1}"
        for place, name in enumerate(ids)
    ]
