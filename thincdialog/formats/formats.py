"""The text formats by name: how each is read."""

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
    """One text format.

    read (Callable): Gives the episodes of a file.
    takes (Sequence[str]): What the reader may have to be told, see ``convert``.
    has_ids (bool): Whether the ids that the reader gives stand in the file.
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
    """See that there is a format of that name.

    use (str): What it is for, in the error.
    RAISES (DialogError): If there is none.
    """
    names = list(known)
    if name not in names:
        hint = nearest(name, names) or f" (there are: {', '.join(names)})"
        raise DialogError(f"there is no format '{name}'{use}{hint}")
