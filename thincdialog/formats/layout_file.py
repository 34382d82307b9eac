"""Read layouts, which describe where a corpus in JSON or a table has its texts and labels."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Dict, List, Literal, Optional, Union, get_type_hints

from confection.typechecker import check_type

from ..errors import ConfigError, DataError, Problem
from .value_file import read_value
from .wording import kind, nearest, short

MAX_LAYOUT = 1 << 20  # Largest file in bytes that is read as a layout.
FOLDER = Path(__file__).parent / "layouts"

# A place inside a value: names and indexes (from 0, or from -1 backwards) with dots between them,
# and "*" for every element of a list; "" for the value itself. " | " separates alternative places,
# of which the first with a value is used.
Where = str

# Uses of the turns of a system before a conversation, see `thincdialog.JSONLayout.v1`.
SystemTurns = Literal["context", "field", "drop"]

# Orders of the rows of one conversation that need no column.
AS_IN_FILE, NEWEST_FIRST = "$file", "$reversed"

# Values of the keys of a layout that are neither a text nor true or false, for error messages.
WANTED = {
    "background_speakers": "a list of names",
    "only": "a mapping of places to texts",
    "records": "a place, or one for each split",
    "replace": "a mapping of regular expressions to replacements",
    "speakers": "a mapping of roles to lists of names",
    "text": "a place, or a list of places",
}


@dataclass(frozen=True)
class CorpusLayout:
    """Describe where a corpus has its texts and labels. A record is one conversation or one
    example: a line of a JSONL file or table, an element of a JSON list, a value of a JSON object.

    about (str): Short description of the corpus.
    separator (str): In a text file, the separator of the parts of a line: each line is a list.
    pattern (str): In a text file, a regular expression with named groups. Each line that it
        matches is an object of the groups; other lines continue the text of the turn above them.
    blocks (bool): In a text file, whether a record is a block of lines with a blank line after
        it: `rows` of cells, and the values of comments such as `# intent: greet`.
    records (Union[Where, Dict]): Where in a JSON or YAML file the records are, or a place for each
        split.
    split (Where): In a record, the name of its split.
    only (Dict[Where, str]): Required values at some places of a turn (if turns are rows or in a
        list) or record, "*" for any value; other turns or records are left out.
    id (Where): In a record, its name; `$key` for its name in an object; "" for none.
    turns (Where): In a record, the list of turns of a conversation.
    group (Where): In a row, a value that all rows of one conversation share; each row is a turn.
        `$file` if one file is one conversation, `$key` if a blank line ends one.
    order (Where): In a turn, a number or date by which the turns are sorted; `$file` for the order
        of the file, `$reversed` for the opposite order. "" for the order of the file if the rows of
        each group are consecutive.
    date_format (str): Format of `order` for Python's `strptime`; "" for dates such as
        2024-05-31 10:15.
    turn_id (Where): In a row of a group, the id of its turn.
    reply_to (Where): In a row of a group, the id of the turn that it answers. Turns are sorted so
        that each follows the turn that it answers.
    speaker (Where): In a turn, who speaks; "" for two speakers who alternate.
    speakers (Dict[str, List]): Roles, and the names of the speakers who have them, with "*" for
        any characters. The first role that fits counts.
    label_speaker (str): Speaker whose turns are the labels, see ``Conversations``.
    weight (Where): In a turn, 0 or false if it is context only and never a label.
    background (Where): In a record, a text or list of texts to put before the first turn.
    background_speakers (List[str]): Speakers whose turns are not part of the conversation, such as
        a system. Their turns before it begins are kept separately, see `thincdialog.JSONLayout.v1`.
    skip (str): Regular expression of turns to leave out, such as "<Media omitted>".
    examples (Where): In a record, the list of examples of an episode; "" for one example.
    each (Where): In a record, a list, or a text of several lines: every element is an episode of
        one example. `$record` is the record around it.
    text (Union[Where, List]): In a turn or example, the text; several are joined.
    join (str): Separator between joined texts.
    label (Where): In an example, the label or list of labels.
    label_separator (str): Separator of several labels in a text.
    label_candidates (Where): In an example, the list of candidates; "" for none.
    html (bool): Whether texts are HTML: tags are removed, and entities become characters.
    latin1 (bool): Whether names and texts are UTF-8 whose bytes were written as characters of
        Latin-1, as in exports of Facebook.
    replace (Dict[str, str]): Regular expressions, and replacements for their matches in texts.
    """

    about: str = ""
    separator: str = ""
    pattern: str = ""
    blocks: bool = False
    records: Union[Where, Dict[str, Where]] = ""
    split: Where = ""
    only: Optional[Dict[Where, str]] = None
    id: Where = ""
    turns: Where = ""
    group: Where = ""
    order: Where = ""
    date_format: str = ""
    turn_id: Where = ""
    reply_to: Where = ""
    speaker: Where = ""
    speakers: Optional[Dict[str, List[str]]] = None
    label_speaker: str = "second"
    weight: Where = ""
    background: Where = ""
    background_speakers: Optional[List[str]] = None
    skip: str = ""
    examples: Where = ""
    each: Where = ""
    text: Union[Where, List[Where]] = "text"
    join: str = "\n"
    label: Where = ""
    label_separator: str = ""
    label_candidates: Where = ""
    html: bool = False
    latin1: bool = False
    replace: Optional[Dict[str, str]] = None

    @property
    def is_conversation(self) -> bool:
        """Whether the corpus has turns of speakers instead of examples."""
        return not self.label

    @property
    def text_places(self) -> List[Where]:
        """The places of the text."""
        return [self.text] if isinstance(self.text, str) else self.text

    @property
    def is_of_lines(self) -> bool:
        """Whether the layout describes how to cut the lines of a text file into records."""
        return bool(self.separator or self.pattern or self.blocks)


def shipped_layouts() -> Dict[str, Path]:
    """Map the name of every bundled layout to its file."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yml"))}


def is_layout_file(name: str) -> bool:
    """Return whether a layout's name is the path of a file."""
    return Path(name).suffix.lower() in (".yml", ".yaml", ".json")


def find_layout(name: str) -> CorpusLayout:
    """Read the layout with a name or a path (see ``find_layout_file``).

    RAISES (ConfigError): If there is no layout of that name.
    RAISES (DataError): If the file cannot be read, or is not a layout.
    """
    return read_layout(find_layout_file(name))


def find_layout_file(name: str) -> Path:
    """Return the file of a bundled layout, or of a custom layout.

    name (str): The layout's name, or the path of a .yml, .yaml or .json file.
    RAISES (ConfigError): If there is no such name.
    """
    known = shipped_layouts()
    if name in known:
        return known[name]
    if not is_layout_file(name):
        hint = nearest(name, list(known)) or f"; choose from: {', '.join(known)}"
        text = f"there is no shipped layout '{name}'{hint}"
        raise ConfigError([Problem("", text, "or give the path of a .yml or .json file")])
    return Path(name)


def layout_place(folder: Path, name: str) -> Path:
    """Return the path at which a saved model keeps a custom layout.

    folder (Path): Folder of the model.
    name (str): The layout's path in the config.
    """
    return folder / "reading" / f"{Path(name).stem}.json"


def read_layout(path: Path) -> CorpusLayout:
    """Read the layout in a file.

    RAISES (DataError): If the file cannot be read, or is not a layout.
    """
    return _read_shipped(path) if path.parent == FOLDER else _read(path)


def _read(path: Path) -> CorpusLayout:
    values = read_value(path, most=MAX_LAYOUT)
    if not isinstance(values, dict):
        raise DataError(path, f"a layout is a mapping such as 'text: prompt', not {kind(values)}")
    types = get_type_hints(CorpusLayout)
    for name, value in values.items():
        if name not in types:
            hint = nearest(str(name), [*types]) or f" (keys: {', '.join(types)})"
            raise DataError(path, f"a layout has no key {short(name)}{hint}")
        values[name] = value = _texts(value)
        if value in (None, []) or not check_type(value, types[name]):
            wanted = "true or false" if types[name] is bool else WANTED.get(name, "a text")
            # With aliases, a short file can describe a text of terabytes.
            shown = kind(value) if value and isinstance(value, (dict, list)) else short(value)
            raise DataError(path, f"'{name}' is {shown}: expected {wanted}")
    layout = CorpusLayout(**values)
    for expression in (layout.pattern, layout.skip, *(layout.replace or ())):
        try:
            re.compile(expression)
        except re.error as error:
            text = f"{short(expression)} is not a regular expression: {error}"
            raise DataError(path, text) from None
    if not layout.label and not layout.turns and not layout.group:
        text = "set 'turns' or 'group' (for conversations), or 'label' (for examples)"
        raise DataError(path, f"the layout does not say where the answers are: {text}")
    for names in (("turns", "group", "label"), ("separator", "pattern", "blocks")):
        given = [name for name in names if getattr(layout, name)]
        if len(given) > 1:
            text = f"the layout has {' and '.join(map(repr, given))}: set only one of them"
            raise DataError(path, text)
    if layout.reply_to and not (layout.group and layout.turn_id):
        raise DataError(path, "'reply_to' needs 'group' and 'turn_id'")
    return layout


# Bundled layouts are read only once, because guessing a format tries them all for each file.
_read_shipped = cache(_read)


def _texts(value: Any) -> Any:
    """Convert numbers in a value of a layout to strings, because a place may be an index."""
    if isinstance(value, dict):
        return {_texts(name): str(one) if type(one) is int else one for name, one in value.items()}
    if isinstance(value, list):
        return [str(one) if type(one) is int else one for one in value]
    return str(value) if type(value) is int else value
