"""Layouts: where in a corpus's JSON or table its texts and labels stand."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Dict, List, Optional, Union

import srsly

from ..errors import ConfigError, DataError, Problem
from ..files.json_text import parse_json
from .text_file import read_bytes
from .wording import kind, nearest, short

LAYOUT_SUFFIXES = (".yml", ".yaml", ".json")
MAX_LAYOUT = 1 << 20  # Largest file in bytes that is read as a layout.
FOLDER = Path(__file__).parent / "layouts"

# A place inside a JSON value: names and numbers (from 0, or from -1 backwards) with dots
# between them; "" for the value itself.
Where = str


@dataclass
class CorpusLayout:
    """Where things stand. A record is one conversation or one example: a line of a JSONL
    file or table, an element of a JSON list, a value of a JSON object.

    about (str): What it is for, in a few words.
    records (Union[Where, Dict]): Where in a JSON file the records are, or that of each split.
    id (Where): In a record, its name; `$key` for its name in an object; "" for none.
    turns (Where): In a record, the list of turns of a conversation.
    group (Where): In a row, what all rows of one conversation have in common; they stand
        one after the other, and each row is a turn.
    turn_id (Where): In a row of a group, its name.
    reply_to (Where): In a row of a group, the row that it answers: turns go in this order.
    speaker (Where): In a turn, who speaks; "" for two who take turns.
    label_speaker (str): Whose turns are the labels, see ``Conversations``.
    background (Where): In a record, a text or list of texts to stand before the first turn.
    background_speakers (List[str]): Speakers whose turns are no part of the talk, such as a
        system; what they say before it begins is kept apart, see `thincdialog.JSONLayout.v1`.
    examples (Where): In a record, the list of examples of an episode; "" for one example.
    text (Union[Where, List]): In a turn or example, the text; several are joined by line ends.
    label (Where): In an example, the label or list of labels.
    label_candidates (Where): In an example, the list of candidates; "" for none.
    replace (Dict[str, str]): What to put in texts for what.
    """

    about: str = ""
    records: Union[Where, Dict[str, Where]] = ""
    id: Where = ""
    turns: Where = ""
    group: Where = ""
    turn_id: Where = ""
    reply_to: Where = ""
    speaker: Where = ""
    label_speaker: str = "second"
    background: Where = ""
    background_speakers: Optional[List[str]] = None
    examples: Where = ""
    text: Union[Where, List[Where]] = "text"
    label: Where = ""
    label_candidates: Where = ""
    replace: Optional[Dict[str, str]] = None

    @property
    def is_conversation(self) -> bool:
        """Whether it has turns of speakers, not examples."""
        return not self.label


def shipped_layouts() -> Dict[str, Path]:
    """Name to file of every layout that comes along."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yml"))}


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
    if Path(name).suffix.lower() not in LAYOUT_SUFFIXES:
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
    content = read_bytes(path, MAX_LAYOUT).decode("utf-8", errors="replace")
    try:
        is_json = path.suffix.lower() == ".json"
        values = parse_json(content) if is_json else srsly.yaml_loads(content)
    except (ValueError, RecursionError) as error:
        # What YAML's own error says names another file.
        cause = error.__context__
        mark, problem = (getattr(cause, name, None) for name in ("problem_mark", "problem"))
        if mark is not None and problem:
            raise DataError(path, f"not valid YAML: {problem}", mark.line + 1) from None
        raise DataError(path, f"not readable: {' '.join(str(error)[:300].split())}") from None
    if not isinstance(values, dict):
        raise DataError(path, f"a layout is a mapping such as 'text: prompt', not {kind(values)}")
    names = [field.name for field in fields(CorpusLayout)]
    for name, value in values.items():
        if name not in names:
            hint = nearest(str(name), names) or f" (there is: {', '.join(names)})"
            raise DataError(path, f"a layout has no {short(name)}{hint}")
        is_text = isinstance(value, str)
        is_list = isinstance(value, list) and value and all(isinstance(one, str) for one in value)
        parts = [*value, *value.values()] if isinstance(value, dict) else [None]
        is_mapping = all(isinstance(part, str) for part in parts)
        good, wanted = {
            "background_speakers": (is_list, "a list of names"),
            "replace": (is_mapping, "a mapping of texts"),
            "records": (is_text or is_mapping, "a place, or one for each split"),
            "text": (is_text or is_list, "a place, or a list of some"),
        }.get(name, (is_text, "a text"))
        if not good:
            # Aliases let a short file say a text of terabytes.
            shown = kind(value) if value and isinstance(value, (dict, list)) else short(value)
            raise DataError(path, f"'{name}' is {shown}: expected {wanted}")
    layout = CorpusLayout(**values)
    if not layout.label and not layout.turns and not layout.group:
        text = "say 'turns' or 'group' (conversations), or 'label' (examples)"
        raise DataError(path, f"the layout does not say where answers stand: {text}")
    given = [name for name in ("turns", "group", "label") if getattr(layout, name)]
    if len(given) > 1:
        raise DataError(path, f"the layout has {' and '.join(map(repr, given))}: only one can be")
    if layout.reply_to and not (layout.group and layout.turn_id):
        raise DataError(path, "'reply_to' needs 'group' and 'turn_id'")
    return layout
