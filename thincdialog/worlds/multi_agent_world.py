"""Any number of agents that all hear each other."""

from typing import Dict, List, Sequence

from ..messages import Message
from ..metrics import Metric
from ..protocol import Agent
from ..teachers.teacher import Teacher
from .world import World


class MultiAgentWorld(World):
    """Round robin: each agent acts once in a parley, and all others observe it at once.

    The first agent acts before it has observed anything. Every message gets the
    field ``agent``: its speaker's id, with a number where several have the same.

    agents (Sequence[Agent]): Two or more, in the order of their turns.
    RAISES (ValueError): If there are fewer than two, or one of them twice.
    """

    def __init__(self, agents: Sequence[Agent]):
        if len(agents) < 2:
            raise ValueError(f"MultiAgentWorld needs two agents or more, got {len(agents)}")
        if len(set(map(id, agents))) < len(agents):
            raise ValueError("MultiAgentWorld got the same agent twice: give it a clone()")
        super().__init__(agents)
        self.names = _unique_names(agents)

    def _parley(self) -> None:
        acts = []
        for speaker, name in zip(self.agents, self.names):
            message = Message(speaker.act(), agent=name)
            acts.append(message)
            for listener in self.agents:
                if listener is not speaker:
                    listener.observe(message)
            if speaker.observation is not None:
                speaker.self_observe(message)
        self.acts = acts

    def _epoch_done(self) -> bool:
        return any(agent.epoch_done() for agent in self.agents if isinstance(agent, Teacher))

    def report(self) -> Dict[str, Metric]:
        """Metrics of all agents, named ``<agent>/<metric>``."""
        return {
            f"{name}/{key}": metric
            for agent, name in zip(self.agents, self.names)
            for key, metric in agent.report().items()
        }


def _unique_names(agents: Sequence[Agent]) -> List[str]:
    ids = [agent.id for agent in agents]
    return [
        name if ids.count(name) == 1 else f"{name}_{ids[:place].count(name) + 1}"
        for place, name in enumerate(ids)
    ]
