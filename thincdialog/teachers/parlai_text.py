"""ParlAI's text format: one message a line, `key:value` fields between tabs."""

from typing import Any, Dict, List, Optional, Union

from ..formats.parlai_text import read_parlai_text
from ..formats.text_file import PathOrPaths
from ..registry import registry
from .arguments import CandidateFile, file_sources
from .teacher import Teacher


@registry.teachers("thincdialog.ParlAIText.v1")
def ParlAIText(
    train: Optional[PathOrPaths] = None,
    dev: Optional[PathOrPaths] = None,
    test: Optional[PathOrPaths] = None,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    candidates: Optional[str] = None,
    streaming: bool = False,
) -> Teacher:
    """Dialogues in ParlAI's text format, for instance
    `text:How are you?<TAB>labels:fine|well<TAB>episode_done:True`.

    Lists are split at `|`; `\\t`, `\\n` and `__PIPE__` in a value stand for a tab, a
    line end and a bar. An episode ends at `episode_done:True` or with the file; empty
    lines mean nothing. Stricter than ParlAI: `episode_done:False` is false, and a
    malformed field is an error. The file's `id`, which need not be unique, becomes
    `source_id`. Any field that is not ParlAI's own stays a text.

    train (Optional[Union[str, List[str]]]): File or files; plain or gzip'd.
    dev (Optional[Union[str, List[str]]]): The same for the split `dev`.
    test (Optional[Union[str, List[str]]]): The same for the split `test`.
    mutators (Optional[Union[List, Dict]]): Applied in order, as `[x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one a line.
    streaming (bool): Read the files for every epoch instead of holding them.
    """
    return Teacher(
        file_sources(read_parlai_text, train=train, dev=dev, test=test),
        candidates=CandidateFile(candidates) if candidates else None,
        mutators=mutators,
        streaming=streaming,
    )
