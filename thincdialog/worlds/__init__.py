"""Worlds: who talks with whom, and in what order."""

from .batch_world import BatchWorld
from .multi_agent_world import MultiAgentWorld
from .partner_world import PartnerWorld
from .world import World, WorldFactory

__all__ = ["BatchWorld", "MultiAgentWorld", "PartnerWorld", "World", "WorldFactory"]
