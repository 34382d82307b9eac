"""The files that a path means."""

import os
from glob import glob
from typing import List

from .packed import is_data
from .text_file import PathOrPaths


def file_list(paths: PathOrPaths) -> List[str]:
    """The files that some paths mean, sorted for each path: all files of data in a folder, and
    all that match a pattern such as "data/*.csv" ("**" for folders in folders).

    paths (PathOrPaths): Paths. One for which there is no file stays as it is, and so does the
        folder of a data set that the library datasets has saved.
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
