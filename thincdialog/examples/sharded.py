"""A user's source that can be read from any place: by number, or part by part."""

import copy
from typing import Any, Iterable, Iterator, Optional, Protocol

from ..formats.bookmark import Bookmark
from ..messages import Episode


class ByNumber(Protocol):
    """A source that gives the episode of a number."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Episode: ...


class ByPart(Protocol):
    """A source that gives the episodes of a part."""

    n_parts: int

    def read_part(self, number: int) -> Iterable[Episode]: ...


class Sharded:
    """A source of which several can read at once.

    source (Union[ByNumber, ByPart]): Gives them. The data are episode 0, 1 and so on, or those of
        part 0, then those of part 1, and so on.
    size (int): Number of its units: episodes, or parts.
    first, last (int): Which units of the source these are; all if last is None.
    """

    first = 0
    last: Optional[int] = None

    def __init__(self, source: Any):
        self.source = source
        self.has_parts = hasattr(source, "read_part")
        self.read = source.read_part if self.has_parts else source.__getitem__
        for name in ("origin", "paths"):
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))

    @property
    def size(self) -> int:
        if self.last is not None:
            return self.last - self.first
        return int(self.source.n_parts) if self.has_parts else len(self.source)

    def section(self, number: int, n: int) -> "Sharded":
        """One of n sections of units that follow each other; no two differ by more than one unit.

        number (int): Which, from 0.
        """
        section, size = copy.copy(self), self.size
        section.first = self.first + size * number // n
        section.last = self.first + size * (number + 1) // n
        return section

    def __call__(self) -> Iterator[Episode]:
        """Read all."""
        return self.read_from(Bookmark())

    def read_from(self, at: Bookmark) -> Iterator[Episode]:
        """Read from a place on, unit by unit.

        at (Bookmark): Lies where to begin, and is moved along.
        """
        for number in range(at.spot[0], self.size if at.last is None else at.last):
            at.spot = number, number
            unit = self.first + number
            if not self.has_parts:
                yield _named(self.read(unit), str(unit))
                continue
            for place, episode in enumerate(self.read(unit)):
                yield _named(episode, f"{unit}.{place}")


def _named(episode: Any, name: str) -> Episode:
    """An episode whose messages have an `id`; what it must be is looked at elsewhere."""
    for turn, message in enumerate(episode if isinstance(episode, list) else ()):
        if isinstance(message, dict):
            message.setdefault("id", f"{name}/{turn}")
    return episode


def sharded(source: Any) -> Any:
    """A source as ``Sharded`` if it can be; else as it is."""
    is_indexable = hasattr(source, "__len__") and hasattr(source, "__getitem__")
    # Lists are more likely episodes that are held already.
    is_indexable = is_indexable and not isinstance(source, (list, tuple, str, bytes, dict))
    if hasattr(source, "read_part") or (is_indexable and not callable(source)):
        return Sharded(source)
    return source
