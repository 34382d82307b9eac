"""Resolve links in paths."""

import os
from pathlib import Path
from typing import Union


def real_path(path: Union[str, Path]) -> Path:
    """Return the absolute path without links. A link that leads to itself is left unchanged, so
    that opening it raises an ``OSError``; ``Path.resolve`` raises other errors in some versions of
    Python."""
    return Path(os.path.realpath(path))
