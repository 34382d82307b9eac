"""ParlAI's text format: one message a line, `key:value` fields between tabs."""

from typing import Any, Dict, List, Literal, Optional, Union

from ..formats.parlai_text import read_parlai_text
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, FileOptions, file_sources
from .teacher import Teacher

NAME = "thincdialog.ParlAIText.v1"


@registry.teachers("thincdialog.ParlAIText.v1")
def ParlAIText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    dev_share: float = 0.0,
    test_share: float = 0.0,
    dev_seed: int = 0,
    on_bad_data: Literal["error", "skip"] = "error",
    max_bad_share: float = 0.05,
    encoding: Optional[str] = None,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """Read dialogues in ParlAI's text format, for instance
    `text:How are you?<TAB>labels:fine|well<TAB>episode_done:True`.

    Lists are split at `|`; `\\t`, `\\n` and `__PIPE__` in a value mean a tab, a
    line end and a bar. An episode ends at `episode_done:True` or with the file; empty
    lines are ignored. Stricter than ParlAI: `episode_done:False` is false, and a
    malformed field is an error. The file's `id`, which need not be unique, becomes
    `source_id`. Fields that ParlAI does not define stay texts.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    dev_share (float): Share of the training conversations to hold out as split `dev`, 0.0
        to less than 1.0; only if no dev is given. A conversation is drawn by a hash of its
        name, or number, and dev_seed.
    test_share (float): The same for the split `test`.
    dev_seed (int): Seed of that draw.
    on_bad_data (str): Whether unreadable data is an "error" or is left out ("skip"). "skip"
        always leaves out a whole conversation, and lists everything left out.
    max_bad_share (float): Share of a file's conversations that may be left out, 0.0 to 1.0;
        more is an error.
    encoding (Optional[str]): Encoding of the files, such as "cp1252"; if None, UTF-8, or UTF-16
        if a byte order mark indicates it.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one per line.
    streaming (bool): Read the files for every epoch instead of holding them in memory.
    RAISES (ConfigError): If a share is out of range, or given together with its split's files.
    """
    options = FileOptions(
        NAME, dev_share, test_share, dev_seed, on_bad_data, max_bad_share, encoding
    )
    return Teacher(
        file_sources(options, lambda _: read_parlai_text, train=train, dev=dev, test=test),
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
    )
