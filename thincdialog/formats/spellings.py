"""Find names of speakers or classes that differ from each other only by case or blanks."""

from collections import Counter
from contextlib import suppress
from typing import Dict, NamedTuple, Optional

from ..errors import DataError

# Largest number of different names that are compared. Data with more speakers has nicknames
# instead of a few roles.
MOST_SPEAKERS, MOST_LABELS = 20, 10_000
_COMPARED = {"speaker": MOST_SPEAKERS, "label": MOST_LABELS}

# Texts that programs write for a missing value, in the form of ``folded``.
NULLS = ("", "nan", "none", "null", "nil", "na", "n/a", "<na>", "#n/a", "undefined")


class Place(NamedTuple):
    """Describe where a name is used.

    path (object): The file, or a description of other data.
    line (Optional[int]): Number of the line, if it is known.
    within (str): The example or value with the name; needed if there is no line number.
    """

    path: object
    line: Optional[int] = None
    within: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else f"{self.path} {self.within}".rstrip()


class Spellings:
    """Collect names, and raise an error for a name that differs from an earlier name only by case
    or blanks. ``prefer`` can choose the accepted spellings in advance.

    what (str): Kind of the names, "speaker" or "label".

    known (Dict[str, Place]): Each accepted name, and the place where it is used first.
    main (str): A name that is compared even if there are too many names; "" for none.
    """

    def __init__(self, what: str):
        self.what, self.most = what, _COMPARED[what]
        self.known: Dict[str, Place] = {}
        self.main = ""
        self._of_form: Dict[str, str] = {}

    def add(self, name: str, place: Place) -> None:
        """Compare a name with the earlier names, and add it.

        RAISES (DataError): If the name is another spelling of an earlier name.
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
        """Accept the most frequent spelling of each name, or the first one of several equally
        frequent spellings. If there are too many names, compare only the spellings of ``main``."""
        if len(found.counts) > self.most:
            self.most = 0
        for name, _ in found.counts.most_common():
            with suppress(DataError):
                self.add(name, found.places[name])


class Counted(Spellings):
    """Count how often each spelling occurs. No spelling is an error."""

    def __init__(self, what: str):
        super().__init__(what)
        self.counts: Counter[str] = Counter()
        self.places: Dict[str, Place] = {}

    def add(self, name: str, place: Place) -> None:
        self.counts[name] += 1
        self.places.setdefault(name, place)


def is_null_like(label: str) -> bool:
    """Return whether a label is a text that programs write for a missing value, not a class."""
    return folded(label) in NULLS


def folded(name: str) -> str:
    """Return a name in lower case without blanks. The result is the same for names that differ only
    by case or blanks."""
    return "".join(name.split()).casefold()
