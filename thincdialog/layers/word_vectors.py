"""Embedding tables initialised with word vectors."""

import math
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
from thinc.api import Model, Ops
from thinc.initializers import uniform_init
from thinc.types import Floats2d

from ..errors import DataError

# Reads vectors: (path, words in UTF-8, width) to pairs of a word and its vector.
Reader = Callable[[str, Collection[bytes], int], Iterable[Tuple[bytes, np.ndarray]]]

# Rows without a vector are drawn from +- this, as in tables without word vectors.
_BOUND = 0.1
_TINY = 1e-30  # Avoids a division by zero if all vectors are zeros.
# Word to the number of its row.
Words = Dict[str, int]


class TableRows:
    """Map words to rows of embedding tables, for initializers that fill tables with word vectors.

    find (Callable[[], Words]): Called when the words are needed.
    coming (Collection[Tuple[int, ...]]): Shapes of parameters that will be set from elsewhere. If
        a table may be one of them, no file is read for it.
    lines (List[str]): Messages for the user.
    unread (List[Tuple[str, tuple]]): The files that were not read, and the shapes of their tables.
    """

    def __init__(self, find: Callable[[], Words], coming: Collection[Tuple[int, ...]] = ()):
        self._find, self._coming = find, coming
        self.unread: List[Tuple[str, tuple]] = []
        self.lines: List[str] = []
        # (path, width) to the rows and vectors of a file, for further tables of that width.
        self.known: Dict[Tuple[str, int], Any] = {}

    @cached_property
    def words(self) -> Words:
        """All words that have a row."""
        return self._find()

    def is_coming(self, path: str, shape: tuple) -> bool:
        """Return whether a table will be set from elsewhere; if so, note that its file was not
        read."""
        is_coming = any(holds_rows(other, shape) for other in self._coming)
        if is_coming:
            self.unread.append((path, shape))
        return is_coming


def holds_rows(shape: tuple, rows: tuple) -> bool:
    """Return whether a parameter has the shape of a table of vectors, or of a table with several
    rows for each vector (BagEmbed has one for each segment)."""
    return len(shape) == 2 and shape[1] == rows[1] and shape[0] % rows[0] == 0


# An initializer only gets a shape. The code that sets up a model knows the words of the rows.
_ROWS: ContextVar[Optional[TableRows]] = ContextVar("table_rows", default=None)


@contextmanager
def rows_of_words(
    find: Callable[[], Words], coming: Collection[Tuple[int, ...]] = ()
) -> Iterator[TableRows]:
    """Fill tables with word vectors while a model is set up for the first time in this context. (No
    file is read for a model whose weights are loaded next.) Arguments are those of ``TableRows``.

    YIELDS (TableRows): Collects messages for the user.
    """
    rows = TableRows(find, coming)
    token = _ROWS.set(rows)
    try:
        yield rows
    finally:
        _ROWS.reset(token)


def word_vectors_init(read: Reader, path: str, ops: Ops, shape: tuple) -> Floats2d:
    """Return an embedding table that is filled with word vectors.

    read (Reader): Reads the vectors.
    path (str): File that ``read`` reads.
    shape (Tuple[int, int]): (n_rows, width).
    RETURNS (Floats2d): Zeros outside of ``rows_of_words``, and for a table that will be set from
        elsewhere.
    """
    rows = _ROWS.get()
    if rows is None or rows.is_coming(path, shape):
        return ops.alloc2f(*shape)
    n_rows, width = shape
    known = rows.known.get((path, width))
    if known is None:
        known = rows.known[path, width] = _find_vectors(read, path, rows, width)
    numbers, vectors = known
    E: Any = uniform_init(ops, (n_rows, width), lo=-_BOUND, hi=_BOUND)
    E[ops.xp.asarray(numbers)] = ops.xp.asarray(vectors)
    return E


def has_word_vectors(model: Model) -> bool:
    """Return whether an initializer of a model's layers is ``word_vectors_init``. (One that is
    hidden in a custom initializer is not found.)"""
    inits = (init for node in model.walk() for init in getattr(node.init, "args", ()))
    return any(getattr(init, "func", None) is word_vectors_init for init in inits)


def _find_vectors(
    read: Reader, path: str, rows: TableRows, width: int
) -> Tuple[np.ndarray, np.ndarray]:
    """Return row numbers, int64, shape (n,), and their vectors, shape (n, width)."""
    words = {word.encode("utf8", "surrogatepass"): row for word, row in rows.words.items()}
    if not words:
        text = "has vectors of words, but the tokenizer's ids are not words"
        raise DataError(path, f"{text}: use one such as thincdialog.Words.v1")
    found = set()
    vectors: Dict[int, np.ndarray] = {}
    for word, vector in read(path, words, width):
        found.add(word)
        # If words share a row, the first one, which is the most frequent, sets it.
        vectors.setdefault(words[word], vector)
    if not found:
        some = ", ".join(repr(word) for word in list(rows.words)[:3])
        text = f"has none of the {len(words):,} words of the training data, such as {some}"
        raise DataError(path, f"{text}: is it in another language, or in another case?")
    line = f"{path}: vectors of {len(found):,} of {len(words):,} words"
    line += f" ({100 * len(found) / len(words):.1f} %)"
    n_without = len(found) - len(vectors)
    if n_without:
        line += f"; {n_without:,} of them share a row with a more frequent word, and get its vector"
    rows.lines.append(line)
    found_vectors = np.stack(list(vectors.values()))
    # Scale to the average size of drawn rows, so that a training step changes both as much.
    size = max(math.sqrt(float(np.square(found_vectors).mean())), _TINY)
    return np.array(list(vectors), dtype=np.int64), found_vectors * (_BOUND / 3**0.5 / size)
