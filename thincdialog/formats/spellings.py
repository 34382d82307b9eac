"""Find names of classes or speakers that differ from each other only by case or blanks."""

from typing import Dict, Iterable, NamedTuple, Optional, Tuple

from ..errors import DataError

# Largest number of different labels that are compared.
MOST_LABELS = 10_000

# Texts that programs write for a missing value, in the form of ``folded``.
NULLS = ("", "nan", "none", "null", "nil", "na", "n/a", "<na>", "#n/a", "undefined")


class Place(NamedTuple):
    """Describe where a label is used.

    path (object): The file, or a description of other data.
    line (Optional[int]): Number of the line, if it is known.
    within (str): The example with the label; needed if there is no line number.
    """

    path: object
    line: Optional[int] = None
    within: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else f"{self.path} {self.within}".rstrip()


class Spellings:
    """Collect the labels that are classes, and raise an error for a label that differs from an
    earlier label only by case or blanks.

    known (Dict[str, Place]): Each label, and the place where it is used first.
    """

    def __init__(self) -> None:
        self.known: Dict[str, Place] = {}
        self._of_form: Dict[str, str] = {}

    def add(self, name: str, place: Place) -> None:
        """Compare a label with the earlier labels, and add it.

        RAISES (DataError): If the label is another spelling of an earlier label.
        """
        if name in self.known or len(self.known) >= MOST_LABELS:
            return
        other = self._of_form.setdefault(folded(name), name)
        if other == name:
            self.known[name] = place
            return
        text = f"the label {name!r} differs from {other!r} ({self.known[other]}) only by "
        text = f"{place.within} has {text}" if place.within and not place.line else text
        raise DataError(place.path, f"{text}case or blanks: spell both the same", place.line)

    def accept(self, names: Iterable[str], place: Place) -> None:
        """Add labels without comparing them, even if two of them differ only by case or blanks.

        place (Place): Where they come from.
        """
        for name in names:
            self.known[name] = place
            self._of_form.setdefault(folded(name), name)


class Collected(Spellings):
    """Collect labels without comparing them."""

    def add(self, name: str, place: Place) -> None:
        self.known[name] = place


def find_slip(speakers: Iterable[str], main: Optional[str] = None) -> Tuple[str, str]:
    """Return the first speaker who differs from an earlier speaker only by case or blanks, and an
    error text; "" and "" if there is none.

    main (Optional[str]): The only speaker to compare the others with; None to compare all.
    """
    of_form = {} if main is None else {folded(main): main}
    for who in speakers:
        other = of_form.get(folded(who), who)
        if other != who:
            text = f"the speaker {who!r} differs from {other!r} only by case or blanks"
            why = "" if main is None else f" ({main!r} is the label_speaker)"
            return who, f"{text}: spell both the same{why}"
        if main is None:
            of_form[folded(who)] = who
    return "", ""


def is_null_like(label: str) -> bool:
    """Return whether a label is a text that programs write for a missing value, not a class."""
    return folded(label) in NULLS


def folded(name: str) -> str:
    """Return a name in lower case without blanks. The result is the same for names that differ only
    by case or blanks."""
    return "".join(name.split()).casefold()
