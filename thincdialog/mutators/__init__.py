"""Mutators: rewrite episodes as they are read, one per file (see ``mutator``)."""

from . import flatten, without_openings  # noqa: F401
from .mutator import Episode, Mutator

__all__ = ["Episode", "Mutator"]
