"""Finds names (of speakers, of classes) that differ from others only by case or blanks."""

from collections import Counter
from contextlib import suppress
from typing import Dict, NamedTuple, Optional

from ..errors import DataError

# Different names that are compared: data with more speakers has nicknames, and not a few roles.
MOST_SPEAKERS, MOST_LABELS = 20, 10_000
_COMPARED = {"speaker": MOST_SPEAKERS, "label": MOST_LABELS}

# Forms of what programs write for a missing value.
NULLS = ("", "nan", "none", "null", "nil", "na", "n/a", "<na>", "#n/a", "undefined")


class Place(NamedTuple):
    """Where a name is used.

    path (object): The file, or what else the data is.
    line (Optional[int]): Its line, if that is known.
    within (str): The example or value there, if no line is known.
    """

    path: object
    line: Optional[int] = None
    within: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else f"{self.path} {self.within}".rstrip()


class Spellings:
    """The spellings of some names. Of two that differ only by case or blanks, the later one is an
    error, unless ``prefer`` says otherwise.

    what (str): What the names are of, "speaker" or "label".

    known (Dict[str, Place]): Each name that is no error, and where it is used first.
    main (str): A name that is compared however many there are; "" for none.
    """

    def __init__(self, what: str):
        self.what, self.most = what, _COMPARED[what]
        self.known: Dict[str, Place] = {}
        self.main = ""
        self._of_form: Dict[str, str] = {}

    def add(self, name: str, place: Place) -> None:
        """Compare a name with those before it.

        RAISES (DataError): If it is another spelling of one of them.
        """
        is_main = len(self.known) < self.most or (self.main and folded(name) == folded(self.main))
        if name in self.known or not is_main:
            return
        other = self._of_form.setdefault(folded(name), name)
        if other == name:
            self.known[name] = place
            return
        text = f"the {self.what} {name!r} differs from {other!r} ({self.known[other]}) only by "
        text = f"{place.within} has {text}" if place.within and not place.line else text
        raise DataError(place.path, f"{text}case or blanks: spell both the same", place.line)

    def prefer(self, found: "Counted") -> None:
        """Take the most frequent spelling of each name to be right; of equally frequent ones the
        first."""
        if len(found.counts) > self.most:
            self.most = 0
        for name, _ in found.counts.most_common():
            with suppress(DataError):
                self.add(name, found.places[name])


class Counted(Spellings):
    """Counts how often each spelling comes; none is an error."""

    def __init__(self, what: str):
        super().__init__(what)
        self.counts: Counter[str] = Counter()
        self.places: Dict[str, Place] = {}

    def add(self, name: str, place: Place) -> None:
        self.counts[name] += 1
        self.places.setdefault(name, place)


def is_null_like(label: str) -> bool:
    """Whether a label is what programs write for a missing value, rather than a class."""
    return folded(label) in NULLS


def folded(name: str) -> str:
    """What names have in common that differ only by case or blanks."""
    return "".join(name.split()).casefold()
