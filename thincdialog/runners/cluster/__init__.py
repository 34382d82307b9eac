"""Workers on one machine or many, which Ray places, watches and starts again."""

from .runner import build_ray

__all__ = ["build_ray"]
