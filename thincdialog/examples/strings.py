"""Strings in UTF-8, which takes a third of the memory of Python strings, and their numbers."""

from array import array
from typing import Any, Dict, Iterable, Iterator, List, Sequence

import numpy as np
from preshed.maps import PreshMap

# Number of strings to decode at a time.
_CHUNK = 4096
_LARGEST_HASH = 0xFFFFFFFFFFFFFFFF


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


class Numbering:
    """Look up the numbers of strings, and add the strings that are new.

    Strings are found by their hashes, so they need not stay in memory as Python strings.

    strings (Strings): The strings known so far, all different; new ones are added here.
    """

    def __init__(self, strings: Strings):
        self.strings, self._by_hash = strings, PreshMap()
        self._recent: Dict[str, int] = {}
        for number in range(len(strings)):
            self._by_hash[self._key(strings[number])] = number

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of each text, int64."""
        recent = self._recent
        new = [text for text in dict.fromkeys(texts) if text not in recent]
        if new:
            self._look_up(new)
        return np.fromiter(map(recent.__getitem__, texts), np.int64, len(texts))

    def forget_recent(self) -> None:
        """Free the memory of recently requested texts, which are cached to find them faster."""
        self._recent.clear()

    def _look_up(self, texts: Sequence[str]) -> None:
        """Find the numbers of texts, and add the new texts to the strings."""
        by_hash, recent, n = self._by_hash, self._recent, len(self.strings)
        added: List[str] = []
        known: Dict[str, int] = {}
        for text in texts:
            key = hash(text) & _LARGEST_HASH
            number = by_hash[key]
            if number is None:
                number = by_hash[key] = n + len(added)
                added.append(text)
            else:
                known[text] = number
            recent[text] = number
        self.strings.extend(added)
        others = self.strings.take(np.fromiter(known.values(), np.int64, len(known)))
        for text, other in zip(known, others):
            if text != other:  # Different strings can have the same hash.
                key = self._key(text)
                number = self._by_hash[key]
                if number is None:
                    number = by_hash[key] = len(self.strings)
                    self.strings.extend([text])
                recent[text] = number

    def _key(self, text: str) -> int:
        """Return the key of a text in ``_by_hash``; for a new text, the free key to use."""
        key = hash(text) & _LARGEST_HASH
        while (number := self._by_hash[key]) is not None and self.strings[number] != text:
            key = (key + 1) & _LARGEST_HASH
        return key


def in_utf8(text: str) -> bytes:
    """Encode a text in UTF-8. The text may have lone surrogates."""
    return text.encode("utf-8", "surrogatepass")
