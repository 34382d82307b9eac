"""Custom layers, one per file. Thinc's layers are in the same registry."""

from ..registry import import_files

import_files(__name__, __path__)
