"""Labelled texts, for instance utterances with intents, in JSONL, CSV or TSV."""

import hashlib
from functools import partial
from typing import Any, Dict, Iterator, List, Optional, Union

from ..errors import ConfigError, Problem
from ..formats.bookmark import Bookmark
from ..formats.labelled_text import read_labelled_text
from ..formats.text_file import PathOrPaths
from ..messages import Episode
from ..registry import registry
from .arguments import CandidateFile, FileSource, Reader, file_sources
from .teacher import Teacher

NAME = "thincdialog.LabelledText.v1"


@registry.teachers("thincdialog.LabelledText.v1")
def LabelledText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    text_field: str = "text",
    label_field: str = "label",
    columns: Optional[List[str]] = None,
    dev_share: float = 0.0,
    dev_seed: int = 0,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """One text and its label (or a JSON list of labels) a line; the format is told by
    the suffix: .jsonl, .csv or .tsv, with .gz behind it or not. Other fields are ignored.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    text_field (str): Name of the text's field or column.
    label_field (str): Name of the label's field or column.
    columns (Optional[List[str]]): Column names of CSV or TSV files that have no header.
    dev_share (float): Share of the training examples to hold out as split `dev`, each
        by a seeded draw, 0.0 to less than 1.0; only if no dev is given.
    dev_seed (int): Seed of that draw.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them.
    RAISES (ConfigError): If dev_share is out of range, or given beside dev.
    """
    problem = None
    if not 0.0 <= dev_share < 1.0:
        problem = f"'dev_share' of {NAME} is {dev_share}", "give 0.0 or more, less than 1.0"
    elif columns is not None and not {text_field, label_field} <= set(columns):
        hint = f"name '{text_field}' and '{label_field}' in it"
        problem = f"'columns' of {NAME} is {columns}", hint
    elif dev_share and dev:
        problem = f"'dev_share' of {NAME} is given beside 'dev'", "leave one of them out"
    if problem:
        raise ConfigError([Problem("", *problem)])
    reader = partial(
        read_labelled_text, text_field=text_field, label_field=label_field, columns=columns
    )
    sources = file_sources(reader, train=train, dev=dev, test=test)
    if dev_share and train:
        for split in ("train", "dev"):
            part = partial(_read_part, reader, split == "dev", dev_share, dev_seed)
            sources[split] = FileSource(part, train)
    return Teacher(
        sources,
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
        single_turn=True,
    )


def _read_part(
    reader: Reader, is_dev: bool, share: float, seed: int, path: str, at: Optional[Bookmark]
) -> Iterator[Episode]:
    for episode in reader(path, at=at):
        name = f"{seed}/{episode[0]['id']}"
        draw = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
        if (draw < share * 2**64) is is_dev:
            yield episode
