"""What agents pass to each other: a message, and a batch of messages in columns.

Field names are ParlAI's: ``text``, ``labels`` (training), ``eval_labels``
(evaluation), ``label_candidates``, ``text_candidates`` (a reply's ranked
candidates, best first), ``episode_done``, ``reward``, ``id`` (of the example),
``features`` (numeric input). Ours: ``context``, the turns before ``text``, and
``agent`` (who speaks). Any other field travels along untouched.
"""

from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union, overload

# A turn of the conversation as the observing agent sees it: who spoke, and what.
PARTNER = 0
SELF = 1
Turn = Tuple[int, str]

# What an agent "hears" when it opens a conversation: nobody has said a thing yet.
SILENCE = "__SILENCE__"


class Message(dict):
    """A message. A plain dict with a name of its own and short access to what
    every consumer asks for."""

    __slots__ = ()

    @property
    def all_labels(self) -> Sequence[str]:
        """``labels`` in training, ``eval_labels`` in evaluation, else ()."""
        return self.get("labels") or self.get("eval_labels") or ()


# The turns of a conversation as data has them: messages with `labels`, no `episode_done`.
Episode = List[Message]


class MessageBatch(Sequence[Message]):
    """Messages held as columns, so that a batch costs no dict for each row.

    A row is a ``Message`` made when it is asked for, so a consumer that knows
    nothing of columns treats it as a list of messages. A column is any sequence, often
    one that is made when it is looked at (``columns.LazyColumn``): to change its cells,
    put another one in its place. A column missing from ``columns`` is missing from every
    row; a ``None`` cell is missing from its row.

    columns (Dict[str, Sequence]): Field name to one value a row; all of one length.
    n_rows (int): Number of rows.
    """

    __slots__ = ("columns", "n_rows")

    def __init__(self, columns: Dict[str, Sequence[Any]], n_rows: int):
        self.columns = columns
        self.n_rows = n_rows

    def __len__(self) -> int:
        return self.n_rows

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> List[Message]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Message, List[Message]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.n_rows))]
        if not -self.n_rows <= index < self.n_rows:
            raise IndexError(f"row {index} of a batch of {self.n_rows} messages")
        cells = ((name, column[index]) for name, column in self.columns.items())
        return Message((name, value) for name, value in cells if value is not None)

    def __iter__(self) -> Iterator[Message]:
        for index in range(self.n_rows):
            yield self[index]


def column(messages: Sequence[Message], name: str) -> Sequence[Any]:
    """One field of every message; None where a message lacks it."""
    if isinstance(messages, MessageBatch):
        found = messages.columns.get(name)
        return [None] * len(messages) if found is None else found
    return [message.get(name) for message in messages]
