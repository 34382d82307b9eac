"""Worlds: who talks with whom, and in what order."""

from .batch_world import BatchWorld, batch_world
from .dynamic_batch_world import DynamicBatchWorld
from .hogwild_world import HogwildWorld, LateWorkerError
from .multi_agent_world import MultiAgentWorld
from .partner_world import PartnerWorld
from .world import World, WorldFactory
from .world_worker import Answer, Parleyed, Workers, WorldWorker

__all__ = [
    "Answer",
    "BatchWorld",
    "DynamicBatchWorld",
    "HogwildWorld",
    "LateWorkerError",
    "MultiAgentWorld",
    "Parleyed",
    "PartnerWorld",
    "Workers",
    "World",
    "WorldFactory",
    "WorldWorker",
    "batch_world",
]
