"""Published encoders, read from a folder without PyTorch."""

from ..registry import import_files

# Files register what they define.
import_files(__name__, __path__)
