"""Episodes in few arrays: how they come from a worker that read them."""

from itertools import chain
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

from ..messages import PARTNER, SELF, Episode, Turn
from .slices import slice_places
from .store import MemoryStore, collection_paused

# Gives of turns the rows of their tokens one after the other, and of each turn the number of its
# rows and of its units (see ``data.TurnStore``).
LayOut = Callable[[Sequence[Turn]], Tuple[np.ndarray, np.ndarray, np.ndarray]]

NONE = -1


class Encoding(NamedTuple):
    """How an agent makes tokens of turns, for who does it for him.

    key (str): Tells it from any other way.
    lay_out (LayOut): Makes them.
    history_size (int): Turns of an example that are read, its text counted; -1 for all.
    has_speakers (bool): Whether it matters who speaks.
    """

    key: str
    lay_out: LayOut
    history_size: int
    has_speakers: bool


class Texts(NamedTuple):
    """A column of texts: of each row the number of its text, int32."""

    numbers: np.ndarray

    def slice(self, first: int, last: int) -> "Texts":
        """Some of the rows."""
        return Texts(self.numbers[first:last])


class Lists(NamedTuple):
    """A column of lists of texts, or of turns.

    counts (np.ndarray): Their lengths, ``NONE`` where a row has no list; int32.
    numbers (np.ndarray): Of the texts, one list after the other; int32.
    speakers (Optional[np.ndarray]): Of turns, who speaks, int8; else None.
    """

    counts: np.ndarray
    numbers: np.ndarray
    speakers: Optional[np.ndarray] = None

    def bounds(self) -> np.ndarray:
        """Where each list begins, and the last one ends."""
        return np.concatenate([[0], np.maximum(self.counts, 0).cumsum()])

    def slice(self, first: int, last: int) -> "Lists":
        """Some of the rows."""
        bounds = self.bounds()
        kept = slice(bounds[first], bounds[last])
        speakers = None if self.speakers is None else self.speakers[kept]
        return Lists(self.counts[first:last], self.numbers[kept], speakers)


# Anything else stays a list.
Column = Union[Texts, Lists, List[Any]]


class Tokens(NamedTuple):
    """What an agent's encoder made of the rows.

    key (str): Of the ``Encoding``.
    bounds (np.ndarray): Where the turns of each row begin, and the last one's end; int64.
    turns (np.ndarray): Entry of each turn, int32.
    entries (np.ndarray): Of each different turn: first row of its tokens, number of rows, number
        of units; shape (3, n_entries), int64.
    tokens (np.ndarray): Rows of the tokens of all entries, int64.
    labels (np.ndarray): Entry of the first label of each row, ``NONE`` where there is none; int32.
    """

    key: str
    bounds: np.ndarray
    turns: np.ndarray
    entries: np.ndarray
    tokens: np.ndarray
    labels: np.ndarray

    def slice(self, first: int, last: int) -> "Tokens":
        """Some of the rows, with all entries."""
        bounds = self.bounds[first : last + 1]
        turns = self.turns[bounds[0] : bounds[-1]]
        labels = self.labels[first:last]
        return self._replace(bounds=bounds - bounds[0], turns=turns, labels=labels)


class Portion(NamedTuple):
    """Some episodes that follow each other.

    starts (np.ndarray): First row of each, and at the end the number of rows; int64.
    columns (Dict[str, Column]): By field.
    letters (np.ndarray): All different texts of the columns in UTF-8, one after the other; uint8.
    ends (np.ndarray): Where each of them ends, int64.
    tokens (Optional[Tokens]): If they were made.
    """

    starts: np.ndarray
    columns: Dict[str, Column]
    letters: np.ndarray
    ends: np.ndarray
    tokens: Optional[Tokens] = None

    @property
    def n_episodes(self) -> int:
        """Number of episodes."""
        return len(self.starts) - 1

    def n_letters(self) -> np.ndarray:
        """Letters before each episode, and at the end those of all, see ``n_letters``; int64."""
        # Each letter has one byte that continues no other.
        begun = np.append(0, ((self.letters & 0xC0) != 0x80).cumsum())
        # The last one is of no text.
        of_texts = np.append(np.diff(begun[np.append(0, self.ends)]), 0)
        of_rows = np.zeros(int(self.starts[-1]), dtype=np.int64)
        for name, column in self.columns.items():
            if isinstance(column, Texts):
                of_rows += of_texts[column.numbers]
            elif isinstance(column, list):
                of_rows += [0 if cell is None else n_letters({name: cell}) for cell in column]
            elif name in ("labels", "context"):
                before = np.append(0, of_texts[column.numbers].cumsum())
                of_rows += np.diff(before[column.bounds()])
        return np.append(0, of_rows.cumsum())[self.starts]

    def slice(self, first: int, last: int) -> "Portion":
        """Some of the episodes."""
        if (first, last) == (0, self.n_episodes):
            return self
        starts = self.starts[first : last + 1]
        rows = int(starts[0]), int(starts[-1])
        columns: Dict[str, Column] = {
            name: column[slice(*rows)] if isinstance(column, list) else column.slice(*rows)
            for name, column in self.columns.items()
        }
        tokens = None if self.tokens is None else self.tokens.slice(*rows)
        return self._replace(starts=starts - starts[0], columns=columns, tokens=tokens)


def n_letters(message: Mapping[str, Any]) -> int:
    """Letters of a message's texts, labels and turns said before; lists of candidates, which many
    may share, do not count."""
    size = sum(len(value) for value in message.values() if type(value) is str)
    size += sum(map(len, message.get("labels") or ()))
    return size + sum(len(turn[1]) for turn in message.get("context") or ())


def pack(
    episodes: Sequence[Episode], encoding: Optional[Encoding] = None, without: Collection[str] = ()
) -> Portion:
    """Episodes as a portion.

    encoding (Optional[Encoding]): Makes tokens of them, too.
    without (Collection[str]): Fields to leave out: all rows have the same in them.
    """
    store = MemoryStore(is_held=False)
    with collection_paused():
        for episode in episodes:
            store.append(episode)
    return pack_store(store, encoding, without)


def pack_store(
    store: MemoryStore, encoding: Optional[Encoding] = None, without: Collection[str] = ()
) -> Portion:
    """The episodes of a store as a portion, see ``pack``."""
    with collection_paused():
        numbers: Dict[str, int] = {}
        columns = {
            name: _packed(values, numbers)
            for name, values in store.columns.items()
            if name not in without
        }
        starts = np.array(store.starts, dtype=np.int64)
        tokens = None
        if encoding is not None:
            tokens = _encoded(columns, int(starts[-1]), numbers, encoding)
        letters = [text.encode("utf-8", "surrogatepass") for text in numbers]
    ends = np.fromiter(map(len, letters), dtype=np.int64, count=len(letters)).cumsum()
    return Portion(starts, columns, np.frombuffer(b"".join(letters), dtype=np.uint8), ends, tokens)


def _packed(values: List[Any], numbers: Dict[str, int]) -> Column:
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {str}:
        return Texts(_numbered(values, numbers))
    if kinds != {list}:
        return values
    flat = list(chain.from_iterable(value or () for value in values))
    inner = set(map(type, flat))
    counts = np.array([NONE if v is None else len(v) for v in values], dtype=np.int32)
    if inner <= {str}:
        return Lists(counts, _numbered(flat, numbers))
    if inner != {tuple} or {tuple(map(type, turn)) for turn in flat} != {(int, str)}:
        return values
    who, said = zip(*flat)
    if not {*who} <= {PARTNER, SELF}:
        return values
    return Lists(counts, _numbered(said, numbers), np.array(who, dtype=np.int8))


def _numbered(texts: Sequence[Optional[str]], numbers: Dict[str, int]) -> np.ndarray:
    number = numbers.setdefault
    found = [NONE if text is None else number(text, len(numbers)) for text in texts]
    return np.array(found, dtype=np.int32)


def _encoded(
    columns: Dict[str, Column], n_rows: int, numbers: Dict[str, int], encoding: Encoding
) -> Optional[Tokens]:
    """Tokens of the rows; None of what an agent sees in another way."""
    nothing = Lists(np.full(n_rows, NONE), np.zeros(0, np.int32), np.zeros(0, np.int8))
    text = columns.get("text", Texts(np.full(n_rows, NONE)))
    context, labels = (columns.get(name, nothing) for name in ("context", "labels"))
    if not (isinstance(text, Texts) and isinstance(context, Lists) and isinstance(labels, Lists)):
        return None
    speakers = context.speakers
    if speakers is None:  # Of empty lists.
        speakers = np.zeros(0, np.int8)
    # A turn's key: its text's number, and who speaks if that matters.
    own = np.where(text.numbers == NONE, numbers.setdefault("", len(numbers)), text.numbers) * 2
    said = context.numbers.astype(np.int64) * 2 + (speakers == SELF)
    has_label = labels.counts > 0
    replies = labels.numbers[labels.bounds()[:-1][has_label]].astype(np.int64) * 2 + 1
    ends = context.bounds()[1:]
    before = np.maximum(context.counts, 0)
    if encoding.history_size > 0:
        before = np.minimum(before, encoding.history_size - 1)
    bounds = np.concatenate([[0], (before + 1).cumsum()]).astype(np.int64)
    keys = np.empty(int(bounds[-1]), dtype=np.int64)
    is_text = np.zeros(len(keys), dtype=bool)
    is_text[bounds[1:] - 1] = True
    keys[is_text] = own
    keys[~is_text] = said[slice_places(ends - before, before)]
    keys = np.concatenate([keys, replies])
    if not encoding.has_speakers:
        keys |= 1
    different, entries = np.unique(keys, return_inverse=True)
    known = list(numbers)
    turns = [(SELF if key & 1 else PARTNER, known[key >> 1]) for key in different.tolist()]
    if turns:
        tokens, lengths, units = encoding.lay_out(turns)
    else:
        tokens = lengths = units = np.zeros(0, dtype=np.int64)
    entries = entries.astype(np.int32)
    of_labels = np.full(n_rows, NONE, dtype=np.int32)
    of_labels[has_label] = entries[bounds[-1] :]
    places = np.stack([lengths.cumsum() - lengths, lengths, units]).astype(np.int64)
    return Tokens(encoding.key, bounds, entries[: bounds[-1]], places, tokens, of_labels)
