"""Map the names of the text formats to their readers."""

from functools import partial
from typing import Callable, Dict, Iterable, Iterator, NamedTuple, Sequence

from ..errors import DialogError
from ..messages import Episode
from .conversations import read_conversations
from .labelled_text import read_labelled_text
from .numbered_text import read_numbered_text
from .parlai_text import read_parlai_text
from .wording import nearest


class Format(NamedTuple):
    """Describe how one text format is read.

    read (Callable): Yields the episodes of a file.
    takes (Sequence[str]): Arguments of ``convert`` that the reader takes.
    has_ids (bool): Whether the ids that the reader returns are from the file.
    """

    read: Callable[..., Iterator[Episode]]
    takes: Sequence[str] = ()
    has_ids: bool = False


_LABELLED = Format(
    partial(read_labelled_text, keep_fields=True),
    ("text_field", "label_field", "columns", "delimiter"),
)
_CONVERSATIONS = Format(read_conversations, ("label_speaker",), has_ids=True)
FORMATS: Dict[str, Format] = {
    "parlai": Format(read_parlai_text),
    "fbdialog": Format(partial(read_numbered_text, supporting=False)),
    "babi": Format(read_numbered_text),
    "conversations": _CONVERSATIONS,
    "parlai-conversations": _CONVERSATIONS,
    "jsonl": _LABELLED,
    "csv": _LABELLED,
    "tsv": _LABELLED,
}


def check_name(name: str, known: Iterable[str], use: str = "") -> None:
    """Check that there is a format with a name.

    use (str): Use of the format, for the error.
    RAISES (DialogError): If there is no such format.
    """
    names = list(known)
    if name not in names:
        hint = nearest(name, names) or f" (there are: {', '.join(names)})"
        raise DialogError(f"there is no format '{name}'{use}{hint}")
