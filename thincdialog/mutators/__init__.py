"""Mutators, which rewrite episodes as they are read, one per file (see ``mutator``)."""

from ..messages import Episode
from ..registry import import_files
from .mutator import Mutator, SplitMutator

import_files(__name__, __path__)

__all__ = ["Episode", "Mutator", "SplitMutator"]
