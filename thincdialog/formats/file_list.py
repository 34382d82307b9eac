"""Expand paths, folders and patterns to lists of files."""

import os
from glob import glob
from typing import List

from .packed import is_data
from .text_file import PathOrPaths


def file_list(paths: PathOrPaths) -> List[str]:
    """Return the files that paths refer to, sorted within each path: all data files in a folder,
    and all files that match a pattern such as "data/*.csv" ("**" matches folders at any depth).

    paths (PathOrPaths): One or more paths. A path is returned unchanged if no file fits it, or if
        it is the folder of a data set that was saved by the library datasets.
    """
    found: List[str] = []
    for path in [paths] if isinstance(paths, str) else paths:
        several: List[str] = []
        if os.path.isdir(path) and not os.path.exists(os.path.join(path, "state.json")):
            names = (name for name in os.listdir(path) if is_data(name))
            several = [os.path.join(path, name) for name in sorted(names)]
        elif not os.path.exists(path) and any(sign in path for sign in "*?["):
            several = sorted(each for each in glob(path, recursive=True) if os.path.isfile(each))
        found += several or [path]
    return found
