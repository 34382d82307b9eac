"""Custom sources that can be read from any position: by number, or part by part."""

import copy
from typing import Any, Iterable, Iterator, Optional, Protocol

from ..contract import wrong_value
from ..formats.context import Bookmark
from ..messages import Episode


class ByNumber(Protocol):
    """A source that returns an episode by its number."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Episode: ...


class ByPart(Protocol):
    """A source that returns the episodes of a part by its number."""

    n_parts: int

    def read_part(self, number: int) -> Iterable[Episode]: ...


class Sharded:
    """Read a source that several processes can read at once.

    source (Union[ByNumber, ByPart]): Source of the data, which consists of episode 0, 1 and so
        on, or of the episodes of part 0, part 1 and so on.
    size (int): Number of units: episodes, or parts.
    first, last (int): Range of the source's units to read; if last is None, all of them.
    """

    first = 0
    last: Optional[int] = None

    def __init__(self, source: Any):
        self.source = source
        self.has_parts = hasattr(source, "read_part")
        self.read = source.read_part if self.has_parts else source.__getitem__
        for name in ("origin", "paths", "about"):
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))

    @property
    def size(self) -> int:
        if self.last is not None:
            return self.last - self.first
        return int(self.source.n_parts) if self.has_parts else len(self.source)

    def section(self, number: int, n: int) -> "Sharded":
        """Return one of n sections of consecutive units, whose sizes differ by one unit at most.

        number (int): Number of the section, from 0.
        """
        section, size = copy.copy(self), self.size
        section.first = self.first + size * number // n
        section.last = self.first + size * (number + 1) // n
        return section

    def __call__(self) -> Iterator[Episode]:
        """Yield all episodes."""
        return self.read_from(Bookmark())

    def read_from(self, at: Bookmark) -> Iterator[Episode]:
        """Yield the episodes from a position on, unit by unit.

        at (Bookmark): Where to start; moved along while reading.
        """
        for number in range(at.spot, self.size if at.last is None else at.last):
            at.spot = number
            unit = self.first + number
            if not self.has_parts:
                yield _named(self.read(unit), str(unit))
                continue
            episodes = self.read(unit)
            if not isinstance(episodes, Iterable):
                raise wrong_value(self.read, episodes, "an iterable of episodes")
            for place, episode in enumerate(episodes):
                yield _named(episode, f"{unit}.{place}")


def _named(episode: Any, name: str) -> Episode:
    """Add an `id` to messages without one. Other code checks that the value is an episode."""
    for turn, message in enumerate(episode if isinstance(episode, list) else ()):
        if isinstance(message, dict):
            message.setdefault("id", f"{name}/{turn}")
    return episode


def sharded(source: Any) -> Any:
    """Return a source as ``Sharded`` if it has the methods of one; otherwise, unchanged."""
    is_indexable = hasattr(source, "__len__") and hasattr(source, "__getitem__")
    # A list is not a source, but more likely holds the episodes themselves.
    is_indexable = is_indexable and not isinstance(source, (list, tuple, str, bytes, dict))
    if hasattr(source, "read_part") or (is_indexable and not callable(source)):
        return Sharded(source)
    return source
