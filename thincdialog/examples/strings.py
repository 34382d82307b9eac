"""Strings stored as UTF-8, which takes a third of the memory of Python strings."""

from array import array
from typing import Any, Iterable, Iterator, List, Sequence

import numpy as np

# Number of strings to decode at a time.
_CHUNK = 4096


class Strings:
    """Hold strings in one array of bytes, numbered from 0.

    content (Any): Bytes of all strings, one string after the other.
    starts (Any): Start of each string in ``content``, and the end of the last string.
    """

    def __init__(self, content: Any = None, starts: Any = None):
        self._content = bytearray() if content is None else content
        self._starts = array("q", [0]) if starts is None else starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        start, end = self._starts[number], self._starts[number + 1]
        return str(self._content[start:end], "utf-8", "surrogatepass")

    def take(self, numbers: np.ndarray) -> List[str]:
        """Return the strings with the given numbers."""
        starts, content = np.asarray(self._starts), self._content
        slices = zip(starts[numbers].tolist(), starts[numbers + 1].tolist())
        return [str(content[start:end], "utf-8", "surrogatepass") for start, end in slices]

    def slices(self, numbers: np.ndarray) -> List[bytes]:
        """Return the strings with the given numbers in UTF-8."""
        starts: Any = np.asarray(self._starts)
        places = zip(starts[numbers].tolist(), starts[numbers + 1].tolist())
        return [bytes(self._content[start:end]) for start, end in places]

    def extend(self, texts: Iterable[str]) -> None:
        """Append strings."""
        self.extend_encoded(list(map(in_utf8, texts)))

    def extend_encoded(self, texts: List[bytes]) -> None:
        """Append strings in UTF-8."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        self._starts.frombytes((len(self._content) + lengths.cumsum()).tobytes())
        self._content += b"".join(texts)


class ChosenStrings(Sequence[str]):
    """Show some strings of a ``Strings`` as a sequence.

    strings (Strings): All strings.
    numbers (np.ndarray): Numbers of the strings to show, int64.
    """

    def __init__(self, strings: Strings, numbers: np.ndarray):
        self.strings, self.numbers = strings, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.strings.take(self.numbers[index])
        return self.strings[self.numbers[index]]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _CHUNK):
            yield from self[start : start + _CHUNK]


def in_utf8(text: str) -> bytes:
    """Encode a text in UTF-8. The text may have lone surrogates."""
    return text.encode("utf-8", "surrogatepass")
