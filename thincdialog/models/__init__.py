"""Architectures, one a file, and how their parameters lie in memory."""

from ..registry import import_files

import_files(__name__, __path__)
