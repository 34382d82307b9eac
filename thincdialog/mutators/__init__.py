"""Mutators, which rewrite episodes as they are read, one idea per file (see ``mutator``)."""

from ..registry import import_files

import_files(__name__, __path__)
