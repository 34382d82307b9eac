"""Layouts: where in a corpus's JSON or table its texts and labels stand."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from ..errors import ConfigError, DataError, Problem
from .value_file import read_value
from .wording import kind, nearest, short

MAX_LAYOUT = 1 << 20  # Largest file in bytes that is read as a layout.
FOLDER = Path(__file__).parent / "layouts"

# A place inside a value: names and numbers (from 0, or from -1 backwards) with dots between them,
# and "*" for every element of a list; "" for the value itself. " | " divides places of which the
# first that holds something counts.
Where = str

# How the rows of one conversation are ordered if no column tells.
AS_IN_FILE, NEWEST_FIRST = "$file", "$reversed"


@dataclass
class CorpusLayout:
    """Where things stand. A record is one conversation or one example: a line of a JSONL
    file or table, an element of a JSON list, a value of a JSON object.

    about (str): What it is for, in a few words.
    separator (str): In a text file, what stands between the parts of a line: each line is a list.
    pattern (str): In a text file, a regular expression with named groups: each line that it
        matches is an object of these; other lines continue the text of the turn above them.
    blocks (bool): In a text file, whether a record is a block of lines with a blank line after
        it: `rows` of cells, and what its comments such as `# intent: greet` say.
    records (Union[Where, Dict]): Where in a JSON or YAML file the records are, or that of each
        split.
    split (Where): In a record, the name of its split.
    only (Dict[Where, str]): What must stand at some places of a turn (if turns are rows or in a
        list) or record, "*" for anything; others are left out.
    id (Where): In a record, its name; `$key` for its name in an object; "" for none.
    turns (Where): In a record, the list of turns of a conversation.
    group (Where): In a row, what all rows of one conversation have in common; each row is a turn.
        `$file` if one file is one conversation, `$key` if a blank line ends one.
    order (Where): In a turn, a number or date by which the turns are sorted; `$file` takes them
        in the order of the file, `$reversed` in the opposite one. "" for the order of the file,
        where the rows of a group must be together.
    date_format (str): Of `order`, as Python's `strptime` takes it; "" for dates such as
        2024-05-31 10:15.
    turn_id (Where): In a row of a group, its name.
    reply_to (Where): In a row of a group, the row that it answers: turns go in this order.
    speaker (Where): In a turn, who speaks; "" for two who take turns.
    speakers (Dict[str, List]): Roles, and the names of the speakers who have them, with "*" for
        any letters. The first role that fits counts.
    label_speaker (str): Whose turns are the labels, see ``Conversations``.
    weight (Where): In a turn, 0 or false if it is context only and never a label.
    background (Where): In a record, a text or list of texts to stand before the first turn.
    background_speakers (List[str]): Speakers whose turns are no part of the talk, such as a
        system; what they say before it begins is kept apart, see `thincdialog.JSONLayout.v1`.
    skip (str): Regular expression of turns to leave out, such as "<Media omitted>".
    examples (Where): In a record, the list of examples of an episode; "" for one example.
    each (Where): In a record, a list, or a text of several lines: every element is an episode of
        one example. `$record` is the record that it stands in.
    text (Union[Where, List]): In a turn or example, the text; several are joined.
    join (str): What stands between joined texts.
    label (Where): In an example, the label or list of labels.
    label_separator (str): Separates several labels in a text.
    label_candidates (Where): In an example, the list of candidates; "" for none.
    html (bool): Whether texts are HTML: tags are removed, and entities become letters.
    latin1 (bool): Whether names and texts are UTF-8 whose bytes were written as characters of
        Latin-1, as in exports of Facebook.
    replace (Dict[str, str]): What to put in texts for what a regular expression matches.
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
        """Whether it has turns of speakers, not examples."""
        return not self.label


def shipped_layouts() -> Dict[str, Path]:
    """Name to file of every bundled layout."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yml"))}


def is_layout_file(name: str) -> bool:
    """Whether a layout's name is the path of a file."""
    return Path(name).suffix.lower() in (".yml", ".yaml", ".json")


def find_layout(name: str) -> CorpusLayout:
    """The layout with a name or a path (see ``find_layout_file``).

    RAISES (ConfigError): If there is none.
    RAISES (DataError): If the file cannot be read, or is no layout.
    """
    return read_layout(find_layout_file(name))


def find_layout_file(name: str) -> Path:
    """The file of a shipped layout, or your own one.

    name (str): The layout's name, or the path of a .yml, .yaml or .json file.
    RAISES (ConfigError): If there is no such name.
    """
    known = shipped_layouts()
    if name in known:
        return known[name]
    if not is_layout_file(name):
        hint = nearest(name, list(known)) or f"; there are: {', '.join(known)}"
        text = f"there is no shipped layout '{name}'{hint}"
        raise ConfigError([Problem("", text, "or give the path of a .yml or .json file")])
    return Path(name)


def layout_place(folder: Path, name: str) -> Path:
    """Where a saved model keeps a custom layout.

    folder (Path): Of the model.
    name (str): The layout's path in the config.
    """
    return folder / "reading" / f"{Path(name).stem}.json"


def read_layout(path: Path) -> CorpusLayout:
    """The layout in a file.

    RAISES (DataError): If it cannot be read, or is no layout.
    """
    values = read_value(path, most=MAX_LAYOUT)
    if not isinstance(values, dict):
        raise DataError(path, f"a layout is a mapping such as 'text: prompt', not {kind(values)}")
    known = {field.name: field.default for field in fields(CorpusLayout)}
    for name, value in values.items():
        if name not in known:
            hint = nearest(str(name), [*known]) or f" (there is: {', '.join(known)})"
            raise DataError(path, f"a layout has no {short(name)}{hint}")
        values[name] = value = _texts(value)
        is_text = isinstance(value, str)
        is_list = isinstance(value, list) and value and all(isinstance(one, str) for one in value)
        parts = [*value, *value.values()] if isinstance(value, dict) else [None]
        is_mapping = all(isinstance(part, str) for part in parts)
        good, wanted = {
            "background_speakers": (is_list, "a list of names"),
            "blocks": (isinstance(value, bool), "true or false"),
            "html": (isinstance(value, bool), "true or false"),
            "latin1": (isinstance(value, bool), "true or false"),
            "only": (is_mapping, "a mapping of places and texts"),
            "replace": (is_mapping, "a mapping of texts"),
            "records": (is_text or is_mapping, "a place, or one for each split"),
            "speakers": (_are_lists(value), "a list of names for each role"),
            "text": (is_text or is_list, "a place, or a list of some"),
        }.get(name, (is_text, "a text"))
        if not good:
            # Aliases let a short file say a text of terabytes.
            shown = kind(value) if value and isinstance(value, (dict, list)) else short(value)
            raise DataError(path, f"'{name}' is {shown}: expected {wanted}")
    layout = CorpusLayout(**values)
    for expression in (layout.pattern, layout.skip, *(layout.replace or ())):
        try:
            re.compile(expression)
        except re.error as error:
            text = f"{short(expression)} is no regular expression: {error}"
            raise DataError(path, text) from None
    if not layout.label and not layout.turns and not layout.group:
        text = "say 'turns' or 'group' (conversations), or 'label' (examples)"
        raise DataError(path, f"the layout does not say where answers stand: {text}")
    for names in (("turns", "group", "label"), ("separator", "pattern", "blocks")):
        given = [name for name in names if getattr(layout, name)]
        if len(given) > 1:
            text = f"the layout has {' and '.join(map(repr, given))}: only one can be"
            raise DataError(path, text)
    if layout.reply_to and not (layout.group and layout.turn_id):
        raise DataError(path, "'reply_to' needs 'group' and 'turn_id'")
    return layout


def _texts(value: Any) -> Any:
    """A value of a layout, in which a place may be a number."""
    if isinstance(value, dict):
        return {_texts(name): str(one) if type(one) is int else one for name, one in value.items()}
    if isinstance(value, list):
        return [str(one) if type(one) is int else one for one in value]
    return str(value) if type(value) is int else value


def _are_lists(value: Any) -> bool:
    lists = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(one, list) and all(isinstance(n, str) for n in one) for one in lists)
