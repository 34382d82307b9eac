"""Runners, which make the steps of training in one process or in several."""

from .alone import Alone
from .cluster import build_ray
from .hogwild import Hogwild
from .hogwild_world import HogwildWorld
