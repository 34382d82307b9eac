"""Read word vectors: word2vec (text and binary), fastText (.vec) and GloVe (text), also
compressed with gzip or zip. Files are read as a stream, and no code in them is run.

    400000 300                first line of word2vec and fastText: words, numbers of each
    the 0.418 0.24968 ...     a word and its numbers; GloVe begins with this

In the binary form of word2vec, numbers are float32, little endian.
"""

import os
from functools import partial
from itertools import count
from typing import Any, BinaryIO, Container, Iterator, List, Tuple

import numpy as np

from ..errors import DataError
from .text_file import opened_bytes

# A word in UTF-8 and its vector, float32.
Row = Tuple[bytes, np.ndarray]
# Longest line, and longest word of a binary file, in bytes.
MAX_LINE, MAX_WORD = 1 << 20, 1 << 12
_CHUNK = 1 << 20
_EXPECTED = (
    "expected word2vec (text or binary), fastText (.vec) or GloVe text: words with their numbers"
)


def read_word_vectors(path: str, wanted: Container[bytes], width: int) -> Iterator[Row]:
    """Yield the vectors of some words, in the order of the file: usually the most frequent word
    first.

    wanted (Container[bytes]): The words, in UTF-8.
    width (int): Number of elements that each vector must have.
    RAISES (DataError): If the file is missing, malformed, cut off, or of another width.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise DataError(path, "is not a plain file: save the vectors as one; it is read twice")
    with opened_bytes(path) as file:
        yield from _read(path, file, wanted, width)


def _read(path: str, file: Any, wanted: Container[bytes], width: int) -> Iterator[Row]:
    first = file.readline(MAX_LINE)
    fields = first.split()
    if len(fields) != 2 or not all(each.isdigit() and len(each) < 19 for each in fields):
        if not _are_numbers(fields[1:]):
            raise DataError(path, f"begins with {_as_text(first)}; {_EXPECTED}", 1)
        check_width(path, len(fields) - 1, width)
        file.seek(0)
        yield from _read_text(path, file, wanted, width, 1)
        return
    n_words, n_numbers = map(int, fields)
    check_width(path, n_numbers, width)
    begin = file.tell()
    numbers = file.readline(MAX_LINE).split()[1:]
    file.seek(begin)
    if len(numbers) >= width and _are_numbers(numbers[-width:]):
        yield from _read_text(path, file, wanted, width, 2, n_words)
    else:
        yield from _read_binary(path, file, wanted, width, n_words)


def check_width(path: str, found: int, width: int) -> None:
    """Check that vectors have the width of the table that they are for.

    RAISES (DataError): If the widths differ.
    """
    if found != width:
        text = f"has vectors of width {found}, but the table has width {width}"
        raise DataError(path, f"{text}: set embed_width (or width) to {found} in [agent.model]")


def _read_text(
    path: str, file: BinaryIO, wanted: Container[bytes], width: int, line: int, n_words: int = 0
) -> Iterator[Row]:
    """Yield the vectors of a text file.

    n_words (int): Number of words that the file announces; 0 if it does not.
    """
    n_read = 0
    for text, number in zip(iter(partial(file.readline, MAX_LINE), b""), count(line)):
        if len(text) == MAX_LINE:
            raise DataError(path, f"a line has {MAX_LINE:,} bytes or more; {_EXPECTED}", number)
        word, _, rest = text.rstrip().partition(b" ")
        if not word:
            continue
        n_read += 1
        n_numbers = rest.count(b" ") + 1 if rest else 0
        if n_numbers < width:
            found = f"{n_numbers} numbers after {_as_text(word)}, expected {width}"
            raise DataError(path, found, number)
        # If there are more numbers, the word contains spaces, so it is not one of `wanted`.
        if n_numbers == width and word in wanted:
            yield word, _numbers(path, rest.split(b" "), number)
    if n_read < n_words:
        raise DataError(path, f"ends after {n_read:,} of {n_words:,} words: it is cut off")


def _numbers(path: str, fields: List[bytes], line: int) -> np.ndarray:
    try:
        vector = _as_floats(fields)
    except ValueError as error:
        raise DataError(path, f"{error}, expected a number", line) from None
    if not np.isfinite(vector).all():
        raise DataError(path, "a number is not finite, or too large for 32 bits", line)
    return vector


def _read_binary(
    path: str, file: BinaryIO, wanted: Container[bytes], width: int, n_words: int
) -> Iterator[Row]:
    buffer, start, size = b"", 0, 4 * width
    for n_read in range(n_words):
        space = buffer.find(b" ", start)
        while space < 0 or len(buffer) < space + 1 + size:
            if space < 0 and len(buffer) - start > MAX_WORD:
                text = f"word {n_read + 1:,} has more than {MAX_WORD:,} bytes; {_EXPECTED}"
                raise DataError(path, text)
            more = file.read(_CHUNK)
            if not more:
                raise DataError(path, f"ends after {n_read:,} of {n_words:,} words: it is cut off")
            buffer, start = buffer[start:] + more, 0
            space = buffer.find(b" ")
        word = buffer[start:space].lstrip(b"\n")
        if word in wanted:
            vector = np.frombuffer(buffer, "<f4", width, space + 1).astype(np.float32)
            if not np.isfinite(vector).all():
                raise DataError(path, f"a number of {_as_text(word)} is not finite")
            yield word, vector
        start = space + 1 + size


def _as_floats(fields: List[bytes]) -> np.ndarray:
    with np.errstate(over="ignore"):  # To infinity, which is refused.
        return np.array(fields, dtype=np.float32)


def _are_numbers(fields: List[bytes]) -> bool:
    try:
        return len(_as_floats(fields)) > 0
    except ValueError:
        return False


def _as_text(data: bytes) -> str:
    return repr(data[:40].decode("utf8", "replace").strip())
