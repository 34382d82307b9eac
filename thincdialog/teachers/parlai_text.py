"""A teacher of ParlAI's text format: one message per line, `key:value` fields between tabs."""

from ..formats.parlai_text import read_parlai_text
from .arguments import FileOptions
from .file_teacher import file_teacher, read_files
from .teacher import Teacher


@file_teacher("thincdialog.ParlAIText.v1")
def ParlAIText(options: FileOptions) -> Teacher:
    """Read dialogues in ParlAI's text format, for instance
    `text:How are you?<TAB>labels:fine|well<TAB>episode_done:True`.

    Lists are split at `|`; `\\t`, `\\n` and `__PIPE__` in a value mean a tab, a
    line end and a bar. An episode ends at `episode_done:True` or with the file; empty
    lines are ignored. The reader is stricter than ParlAI: `episode_done:False` is false, and a
    malformed field is an error. The file's `id`, which need not be unique, becomes
    `source_id`. Fields that ParlAI does not define stay texts.
    """
    return read_files(options, lambda _: read_parlai_text)
