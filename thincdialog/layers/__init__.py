"""Layers of our own, one a file; Thinc's own are in the same registry."""

from ..registry import import_files

import_files(__name__, __path__)
