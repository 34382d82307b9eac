"""Check the output files of a command, before any work."""

import argparse
import os
from itertools import chain
from typing import Sequence

from ..errors import OutputError
from ..files.saved_model import CONFIG
from ..formats.file_list import file_list
from ..formats.output_file import check_output_file


def check_outputs(arguments: argparse.Namespace, names: Sequence[str]) -> None:
    """Check, before any work, that a command may write its output files. With --force it may
    overwrite existing files, but never a file that the command line names as an input.

    arguments (Namespace): The arguments of the command.
    names (Sequence[str]): Names of the arguments that hold the paths; the value None means no file,
        and "-" means stdout.
    RAISES (OutputError): If a file must not be written.
    """
    outputs = [str(path) for name in names if (path := getattr(arguments, name)) is not None]
    if not outputs:
        return
    given = (value for name, value in vars(arguments).items() if name not in names)
    texts = chain.from_iterable(
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        for value in given
    )
    # All data files in a folder are inputs, unless it is the folder of a run or a model.
    inputs = [x for x in texts if isinstance(x, str) and not os.path.exists(f"{x}/{CONFIG}")]
    places = list(map(os.path.realpath, outputs))
    for target, place in zip(outputs, places):
        is_file = os.path.isfile(place) or not os.path.exists(place)
        if is_file and places.count(place) > 1:
            raise OutputError(f"{target}  is named twice. Choose another name for one of them.")
        if target != "-":
            check_output_file(target, getattr(arguments, "force", False), file_list(inputs))
