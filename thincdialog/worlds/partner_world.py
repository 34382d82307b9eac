"""A world of a teacher and an agent, with one conversation at a time."""

from typing import Any, Dict, Mapping

from ..messages import Message
from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .multi_agent_world import MultiAgentWorld
from .world import WorldFactory


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
