"""The text formats by name: how each is read, written, and checked."""

from functools import partial
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from ..errors import DataError
from ..messages import Episode
from .conversations import conversation_line, read_conversations
from .labelled_text import labelled_json_line, read_labelled_text, table_line
from .numbered_text import numbered_lines, read_numbered_text
from .parlai_text import parlai_lines, read_parlai_text
from .text_file import Written
from .wording import short


class Format(NamedTuple):
    """One text format.

    read (Callable): Gives the episodes of a file.
    lines (Callable): Lines for an episode (and its name), which it may not hold.
    takes (Sequence[str]): What the reader may have to be told, see ``convert``.
    header (str): Line before all others.
    suffix (str): What its files end in, if the reader must know.
    fields (Optional[Sequence[str]]): Fields that it can hold; any if None.
    has_ids (bool): Whether the ids that the reader gives stand in the file.
    one_turn (bool): Whether an episode can have one turn only.
    one_label (bool): Whether an example can have one label only.
    hint (str): What a text must not hold; "" if the format holds every text.
    """

    read: Callable[..., Iterator[Episode]]
    lines: Callable[[Episode, str], List[str]]
    takes: Sequence[str] = ()
    header: str = ""
    suffix: str = ""
    fields: Optional[Sequence[str]] = None
    has_ids: bool = False
    one_turn: bool = False
    one_label: bool = False
    hint: str = ""


_FBDIALOG = Format(
    partial(read_numbered_text, supporting=False),
    numbered_lines,
    fields=["text", "labels", "reward", "label_candidates"],
    hint="in it \\n stands for a line end, tabs and bars divide, an answer must not be "
    "empty, and blanks at the ends of a line are lost: --drop blanks takes them off",
)
_CONVERSATIONS = Format(
    read_conversations,
    conversation_line,
    ("label_speaker",),
    fields=["text", "labels", "source_id"],
    has_ids=True,
    one_label=True,
)
_JSONL = Format(
    partial(read_labelled_text, keep_fields=True),
    labelled_json_line,
    ("text_field", "label_field"),
    suffix=".jsonl",
    one_turn=True,
    hint="'text', 'label' and 'id' have a meaning of their own in it",
)
_CSV = _JSONL._replace(
    lines=partial(table_line, divider=","),
    takes=("text_field", "label_field", "columns", "delimiter"),
    header="text,label",
    suffix=".csv",
    fields=["text", "labels"],
    one_label=True,
    hint="in it CR LF and LF are the same line end",
)
FORMATS: Dict[str, Format] = {
    "parlai": Format(
        read_parlai_text,
        parlai_lines,
        hint=r"in it \n, \t and __PIPE__ stand for a line end, a tab and a bar",
    ),
    "fbdialog": _FBDIALOG,
    "babi": _FBDIALOG._replace(
        read=read_numbered_text, fields=[*(_FBDIALOG.fields or ()), "supporting"]
    ),
    "conversations": _CONVERSATIONS,
    "parlai-conversations": _CONVERSATIONS._replace(
        lines=partial(conversation_line, as_parlai=True)
    ),
    "jsonl": _JSONL,
    "csv": _CSV,
    "tsv": _CSV._replace(
        lines=partial(table_line, divider="\t"),
        header="text\tlabel",
        suffix=".tsv",
        hint="in it are no tabs and line ends",
    ),
}

CONVERSATIONS = ("conversations", "parlai-conversations")


def why_not_held(episode: Episode, lines: List[str], name: str) -> str:
    """What of an episode its lines do not say, or "".

    episode (Episode): Without the field `id`.
    lines (List[str]): From the format's ``lines``.
    name (str): Of the format.
    """
    form = FORMATS[name]
    for line in lines:
        if "\r\n" in line or line.endswith("\r") or "\0" in line:
            return "it has a NUL, or a CR before a line end"
        if "\n\ufeff" in f"\n{line}":
            return "a line would begin with a byte order mark, which reading leaves out"
        if "\n" in line and name != "csv":
            return "it has a line end where there can be none"
    if not form.hint:
        return ""
    # A cell of a table may have several lines.
    lines = "\n".join([form.header, *lines] if form.header else lines).split("\n")
    try:
        found = list(form.read(Written(f"lines{form.suffix}", lines)))
    except DataError as error:
        return f"it would not be readable: {str(error).partition('  ')[2] or error}"
    n_found = [len(part) for part in found]
    if n_found != [len(episode)]:
        return f"{len(episode)} turns would be read as {sum(n_found)} (of {len(found)} episodes)"
    for message, back in zip(episode, found[0]):
        for field in dict.fromkeys([*message, *back]):
            if field != "id" and message.get(field) != back.get(field):
                was, now = short(message.get(field), 40), short(back.get(field), 40)
                return f"'{field}' {was} would be read as {now}"
    return ""
