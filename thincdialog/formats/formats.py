"""Map the names of the text formats to their readers."""

from functools import partial
from typing import Callable, Dict, Iterable, Iterator

from ..errors import DialogError
from ..messages import Episode
from .conversations import read_conversations
from .labelled_text import read_labelled_text
from .numbered_text import read_numbered_text
from .parlai_text import read_parlai_text
from .wording import nearest

# Takes the path of a file and, as argument `at`, a bookmark, which it moves along while it reads.
# Yields the episodes.
Reader = Callable[..., Iterator[Episode]]

_LABELLED = partial(read_labelled_text, keep_fields=True)
FORMATS: Dict[str, Reader] = {
    "parlai": read_parlai_text,
    "fbdialog": partial(read_numbered_text, supporting=False),
    "babi": read_numbered_text,
    "conversations": read_conversations,
    "parlai-conversations": read_conversations,
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
        hint = nearest(name, names) or f" (choose from: {', '.join(names)})"
        raise DialogError(f"there is no format '{name}'{use}{hint}")
