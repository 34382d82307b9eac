"""Training on a Ray cluster, with workers on one machine or on several."""

from .runner import build_ray
