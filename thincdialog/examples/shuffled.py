"""Orders of any number of episodes that take no memory: each place is computed when it is asked
for."""

from typing import Any, Callable, Optional, Sequence

import numpy as np

_ROUNDS = 8
# Places that are computed at once.
_CHUNK = 1 << 13
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(33)

# Gives the numbers that stand at places, int64.
At = Callable[[np.ndarray], np.ndarray]


class Shuffled:
    """Numbers 0 .. n - 1 in a drawn order, as an array that is only read.

    A Feistel network of eight rounds permutes the whole numbers below a power of 2 that is
    less than 2 n; one that falls outside is sent through again until it falls inside.

    n (int): How many.
    words (Sequence[int]): What is drawn by.
    members (Optional[Callable]): Gives what the numbers stand for; themselves if None.
    SOURCE: Black and Rogaway 2002, https://doi.org/10.1007/3-540-45760-7_9 (cycle walking)
    """

    def __init__(self, n: int, words: Sequence[int], members: Optional[At] = None):
        self.n, self._members = n, members
        n_bits = max(2, (n - 1).bit_length())
        low = n_bits // 2
        self._bits = np.uint64(low), np.uint64(n_bits - low)
        self._keys = np.random.SeedSequence(list(words)).generate_state(_ROUNDS, np.uint64)
        self._first, self._known = 0, np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return self.item(index)
        places = range(*index.indices(self.n))
        parts = [self._known[:0]]
        for start in range(places.start, places.stop, _CHUNK):
            stop = min(start + _CHUNK, places.stop)
            parts.append(self._from(start)[: stop - start])
        return np.concatenate(parts) if len(parts) != 2 else parts[1]

    def item(self, place: int) -> int:
        """What stands at one place."""
        return int(self._from(place)[0])

    def _from(self, start: int) -> np.ndarray:
        """What stands at a place and behind it, up to ``_CHUNK`` of them."""
        skipped = start - self._first
        stop = min(start + _CHUNK, self.n)
        if skipped < 0 or stop > self._first + len(self._known):
            # Who reads on finds the next ones computed.
            self._first, skipped = start, 0
            self._known = self.at(np.arange(start, min(start + 2 * _CHUNK, self.n)))
        return self._known[skipped : skipped + _CHUNK]

    def at(self, places: np.ndarray) -> np.ndarray:
        """What stands at some places.

        places (np.ndarray): Each 0 to n - 1, int64.
        """
        numbers = self._permuted(places.astype(np.uint64))
        outside = np.flatnonzero(numbers >= self.n)
        while len(outside):
            numbers[outside] = self._permuted(numbers[outside])
            outside = outside[numbers[outside] >= self.n]
        found = numbers.astype(np.int64)
        return found if self._members is None else self._members(found)

    def _permuted(self, numbers: np.ndarray) -> np.ndarray:
        """Each of the whole numbers below the power of 2 gives another one."""
        # The halves change places in each round; where they differ by a bit, so do their sizes.
        right_bits, left_bits = self._bits
        left = numbers >> right_bits
        right = numbers & _ones(right_bits)
        for key in self._keys:
            mixed = right ^ key
            mixed *= _MIX[0]
            mixed ^= mixed >> _SHIFT
            mixed *= _MIX[1]
            mixed ^= mixed >> _SHIFT
            left, right = right, left ^ (mixed & _ones(left_bits))
            left_bits, right_bits = right_bits, left_bits
        return (left << right_bits) | right


def _ones(n_bits: np.uint64) -> np.uint64:
    return np.uint64((1 << int(n_bits)) - 1)
