"""Messages that agents exchange, and batches of messages in columns.

Field names are ParlAI's: ``text``, ``labels`` (training), ``eval_labels``
(evaluation), ``label_candidates``, ``text_candidates`` (a reply's ranked
candidates, best first), ``episode_done``, ``reward``, ``id`` (of the example),
``features`` (numeric input). This package adds ``context``, the turns before ``text``, and
``agent``, the speaker. Any other field is passed on unchanged.
"""

from functools import partial
from itertools import repeat
from typing import (
    Any,
    Callable,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    overload,
)

# The splits of data.
SPLITS = ("train", "dev", "test")

# A turn of the conversation as the observing agent sees it: speaker and text.
PARTNER = 0
SELF = 1
Turn = Tuple[int, str]

# The text that an agent observes when it opens a conversation.
SILENCE = "__SILENCE__"

# The reply if no candidate is probable enough.
DONT_KNOW = "I don't know."


class Message(dict):
    """Hold a message: a dict with a property for the labels, which every consumer
    needs."""

    __slots__ = ()

    @property
    def all_labels(self) -> Sequence[str]:
        """``labels`` in training, ``eval_labels`` in evaluation, else ()."""
        return self.get("labels") or self.get("eval_labels") or ()


# The turns of a conversation as in the data: messages with `labels`, without `episode_done`.
Episode = List[Message]


class Columns(Sequence[Message]):
    """Hold messages field by field, so that a batch needs no dict for each message. A subclass
    defines ``__len__``, ``names`` and ``column``.

    A row is a ``Message`` that is made on access, so code that does not know columns can treat a
    batch as a list of messages. A ``None`` cell is missing from its row.
    """

    __slots__ = ()

    def names(self) -> Iterable[str]:
        """Return the fields that a row may have."""
        raise NotImplementedError

    def column(self, name: str) -> Sequence[Any]:
        """Return one field of every row, None where a row lacks it. Do not change the result."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> List[Message]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Message, List[Message]]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of a batch of {len(self)} messages")
        cells = ((name, self.column(name)[index]) for name in self.names())
        return Message((name, value) for name, value in cells if value is not None)

    def __iter__(self) -> Iterator[Message]:
        names = list(self.names())
        rows = zip(*map(self.column, names)) if names else repeat((), len(self))
        for cells in rows:
            yield Message([(name, cell) for name, cell in zip(names, cells) if cell is not None])


class MessageBatch(Columns):
    """Hold messages in columns, such as the replies to a batch.

    columns (Mapping[str, Union[Sequence, Callable]]): Field name to the column, one value per row;
        or to a function that returns the column, which is called when the field is first read.
    n_rows (int): Number of rows.
    is_on_device (bool): Whether reading a field waits for a GPU.
    """

    __slots__ = ("columns", "n_rows", "is_on_device")

    def __init__(
        self,
        columns: Mapping[str, Union[Sequence[Any], Callable[[], Sequence[Any]]]],
        n_rows: int,
        is_on_device: bool = False,
    ):
        self.columns, self.n_rows = dict(columns), n_rows
        self.is_on_device = is_on_device

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"MessageBatch({self.columns}, {self.n_rows})"

    def names(self) -> Iterable[str]:
        return self.columns

    def column(self, name: str) -> Sequence[Any]:
        if name not in self.columns:
            return [None] * self.n_rows
        cells = self.columns[name]
        if callable(cells):
            cells = self.columns[name] = cells()
        return cells


def column(messages: Sequence[Message], name: str) -> Sequence[Any]:
    """Return one field of every message, None where a message lacks it."""
    if isinstance(messages, Columns):
        return messages.column(name)
    return [message.get(name) for message in messages]


def in_their_places(
    replies: Optional[Sequence[Message]], rows: Sequence[int], n_rows: int
) -> Sequence[Message]:
    """Put replies to some rows of a batch in their rows; other rows get empty replies.

    replies (Optional[Sequence[Message]]): One reply for each of ``rows``; None: all are empty.
    rows (Sequence[int]): Rows of the replies, ascending.
    n_rows (int): Number of rows of the whole batch.
    """
    if replies is None:
        return MessageBatch({}, n_rows)
    if len(replies) == n_rows:
        return replies
    if isinstance(replies, MessageBatch) and replies.is_on_device:
        columns = {
            name: partial(_placed, partial(replies.column, name), rows, n_rows)
            for name in replies.names()
        }
        return MessageBatch(columns, n_rows, is_on_device=True)
    return [each or Message() for each in _placed(lambda: replies, rows, n_rows)]


def _placed(cells: Callable[[], Sequence[Any]], rows: Sequence[int], n_rows: int) -> List[Any]:
    placed: List[Any] = [None] * n_rows
    for row, cell in zip(rows, cells()):
        placed[row] = cell
    return placed


# --- checks of messages from users' code ------------------------------------------------------

# Description for error messages.
FIELDS = "(text: a string; labels, label_candidates, text_candidates: lists of strings)"
_LISTS = ("labels", "eval_labels", "label_candidates", "text_candidates")


def is_message(value: Any, *given: Any) -> bool:
    """Return whether a value is a message (or dict) with valid fields; any may be missing."""
    # A dict is recognised faster than a Mapping.
    is_mapping = isinstance(value, (dict, Mapping))
    return is_mapping and _is_text(value.get("text")) and not wrong_list(value)


def wrong_list(message: Mapping[str, Any]) -> str:
    """Return the first field of a message that should be a list of strings but is not, else ""."""
    for name in _LISTS:
        if name in message and not _are_strings(message[name]):
            return name
    return ""


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _are_strings(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple))
    return value is None or (is_list and all(isinstance(each, str) for each in value))


def are_messages(values: Any, given: Any = None, *rest: Any) -> bool:
    """Return whether a value is a sequence of messages, one for each item of ``given``."""
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
        return False
    if given is not None and len(values) != len(given):
        return False
    if not isinstance(values, Columns):
        return all(map(is_message, values))
    # Check column by column: most batches have few of these fields, and making rows would be slow.
    for name in {"text", *_LISTS}.intersection(values.names()):
        cells = values.column(name)
        fits = _is_text if name == "text" else _are_strings
        if len(cells) != len(values) or not all(map(fits, cells)):
            return False
    return True
