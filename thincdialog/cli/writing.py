"""Write the output files of a command, without overwriting files that it reads."""

import argparse
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator, Tuple

from ..errors import ConfigError, OutputError
from ..files.saved_model import BEST, CONFIG, LAST, META
from ..formats.file_list import file_list
from ..formats.output_file import check_output_file, open_output

# Files and folders in the folder of a run.
_OF_A_RUN = (CONFIG, "log.jsonl", "scores.json", BEST, LAST)


def check_outputs(arguments: argparse.Namespace, *names: str) -> None:
    """Check, before any work, that a command may write its output files. With --force it may
    overwrite existing files, but never a file that it reads.

    arguments (Namespace): The arguments of the command.
    names (str): Names of the arguments that hold the paths; the value None means no file, and "-"
        means stdout.
    RAISES (OutputError): If a file must not be written.
    """
    outputs = [str(path) for name in names if (path := getattr(arguments, name)) is not None]
    places = list(map(os.path.realpath, outputs))
    for target, place in zip(outputs, places):
        is_file = os.path.isfile(place) or not os.path.exists(place)
        if is_file and places.count(place) > 1:
            raise OutputError(f"{target}  is named twice. Choose another name for one of them.")
    targets = [path for path in outputs if path != "-"]
    # Only existing files can be overwritten.
    if any(map(os.path.isfile, targets)):
        given = {name: value for name, value in vars(arguments).items() if name not in names}
        for source, why in _read(given):
            for target in targets:
                if os.path.isfile(target) and os.path.samefile(target, source):
                    raise OutputError(f"{target}  {why}. Choose another name.")
    for target in targets:
        check_output_file(target, getattr(arguments, "force", False))


def _read(given: Any) -> Iterator[Tuple[str, str]]:
    """Yield the files that a command reads, as far as its arguments and configs name them, with the
    reason for the error message."""
    texts = list(_texts(given))
    # All files in a data folder are read; folders of models and runs are handled below.
    texts += file_list([text for text in texts if not _is_of_a_run(text)])
    for text in filter(os.path.isfile, texts):
        yield text, "is read by this command"
    for text in texts:
        if os.path.isfile(text):
            yield from _named_in(text)
        elif os.path.isdir(text):
            folder = Path(text)
            parts = [folder] if (folder / META).is_file() else [folder / n for n in _OF_A_RUN]
            parts += folder.glob("checkpoint-*")
            for path in (path for part in parts for path in (part, *part.rglob("*"))):
                if path.is_file():
                    yield str(path), f"belongs to {text}, which this command reads"
            for config in (folder / CONFIG, folder / BEST / CONFIG):
                yield from _named_in(str(config))


def _is_of_a_run(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in (META, *_OF_A_RUN))


def _named_in(path: str) -> Iterator[Tuple[str, str]]:
    """Yield the files that a config names."""
    if path.endswith(".cfg") and os.path.isfile(path):
        from ..config import read_sections

        try:
            sections = read_sections(path)
        except ConfigError:  # The command that uses the config reports it.
            return
        for text in filter(os.path.isfile, _texts(sections)):
            yield text, f"is named in {path}"


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings in a value, including those in a list that an override gives as JSON."""
    if isinstance(value, str):
        yield value
        if value.startswith("["):
            with suppress(ValueError):
                yield from _texts(json.loads(value))
    elif isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def write_text(output: str, text: str, force: bool) -> None:
    """Write a text to a file, or to stdout if the path is "-".

    RAISES (OutputError): If the file exists and ``force`` is not set, or if it cannot be written.
    """
    if output == "-":
        sys.stdout.write(text)
        return
    with open_output(output, force) as write_line:
        write_line(text.removesuffix("\n"))
