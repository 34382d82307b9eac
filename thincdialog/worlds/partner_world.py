"""A teacher and an agent, one conversation at a time."""

from typing import Any, Dict, Mapping

from ..protocol import Agent
from ..registry import registry
from ..teachers.teacher import Teacher
from .world import World, WorldFactory


@registry.worlds("thincdialog.PartnerWorld.v1")
def build_partner_world() -> WorldFactory:
    """One conversation at a time: for display, debugging and comparison."""
    return PartnerWorld


class PartnerWorld(World):
    """The teacher acts, the agent observes and answers, the teacher observes.

    teacher (Teacher): Where the messages come from.
    agent (Agent): Who answers.
    """

    def __init__(self, teacher: Teacher, agent: Agent):
        super().__init__([teacher, agent])
        self.teacher = teacher
        self.agent = agent

    def _parley(self) -> None:
        message = self.teacher.act()
        self.heard = [message]
        self.agent.observe(message)
        reply = self.agent.act()
        self.teacher.observe(reply)
        self.agent.self_observe(reply)
        self.acts = (message, reply)

    def _epoch_done(self) -> bool:
        return self.teacher.epoch_done()

    def _state(self) -> Dict[str, Any]:
        return {"teacher": self.teacher.state(), "agent": self.agent.conversation_state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.teacher.restore(state["teacher"])
        self.agent.set_conversation_state(state["agent"])
