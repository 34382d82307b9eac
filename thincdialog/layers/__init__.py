"""Layers of our own, one a file; Thinc's own stand beside them in the registry."""

from ..registry import import_files

import_files(__name__, __path__)
