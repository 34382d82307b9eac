"""Model architectures, one per file, and the layout of their parameters in memory."""

from ..registry import import_files

import_files(__name__, __path__)
