"""Runners: who makes the steps of training, one process or many."""

from .alone import Alone
from .cluster import build_ray
from .hogwild import Hogwild
from .hogwild_world import HogwildWorld

__all__ = ["Alone", "Hogwild", "HogwildWorld"]
