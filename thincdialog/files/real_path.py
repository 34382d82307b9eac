"""Where a path leads."""

import os
from pathlib import Path
from typing import Union


def real_path(path: Union[str, Path]) -> Path:
    """The place that links lead to, in full. One that leads to itself stays as it is: opening it
    is an ``OSError``, where ``Path.resolve`` raises something else in some versions of Python."""
    return Path(os.path.realpath(path))
