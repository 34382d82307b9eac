"""Worlds, in which a teacher and agents talk with each other."""

from .batch_world import BatchWorld
from .dynamic_batch_world import DynamicBatchWorld
from .multi_agent_world import MultiAgentWorld, PartnerWorld
from .world import World, WorldFactory
