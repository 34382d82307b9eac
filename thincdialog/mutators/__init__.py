"""Mutators: rewrite episodes as they are read, one per file (see ``mutator``)."""

from ..messages import Episode
from . import (  # noqa: F401
    context_shuffle,
    episode_reverse,
    episode_shuffle,
    flatten,
    label_noise,
    last_turn,
    limit,
    without_openings,
    word_reverse,
    word_shuffle,
)
from .mutator import Mutator, SplitMutator

__all__ = ["Episode", "Mutator", "SplitMutator"]
