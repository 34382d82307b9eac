"""Batchers: which conversations go through an agent together, one policy per file."""

from .batcher import Batcher
from .fixed import Fixed

__all__ = ["Batcher", "Fixed"]
