"""Number strings that are stored once each."""

from typing import Dict, List, Sequence

import numpy as np
from preshed.maps import PreshMap

from .strings import Strings

_LARGEST = 0xFFFFFFFFFFFFFFFF


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
        by_hash, recent, n = self._by_hash, self._recent, len(self.strings)
        added: List[str] = []
        known: Dict[str, int] = {}
        for text in texts:
            key = hash(text) & _LARGEST
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
        key = hash(text) & _LARGEST
        while (number := self._by_hash[key]) is not None and self.strings[number] != text:
            key = (key + 1) & _LARGEST
        return key
