"""Tolerate problems in data that are errors in training, but not in other uses of the data."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Dict, Iterator, NamedTuple, Optional

from .bad_data import BadData
from .spellings import Spellings


class Tolerance(NamedTuple):
    """Hold the problems that are tolerated. (They are kept in a context variable, because the code
    between the caller and the readers, such as a teacher, does not know why data is read.)

    unlabelled (bool): Whether examples without a label are tolerated, so that they can be answered.
    outside_labels (bool): Whether labels that are not among their candidates are tolerated.
    empty_labels (bool): Whether empty lists of labels are tolerated, for agents that also train on
        texts without a label.
    bad_data (Optional[Dict[str, BadData]]): Collects errors of data that cannot be read, by path.
        If given, no error ends the reading of a file, whatever the teachers' settings.
    classes (Optional[Spellings]): Spellings of the labels, if they are classes; None to tolerate
        labels that differ only by case or blanks, as replies may.
    needs_text (bool): Whether only text and features are read, so that other texts are no input.
    """

    unlabelled: bool = False
    outside_labels: bool = False
    empty_labels: bool = False
    bad_data: Optional[Dict[str, BadData]] = None
    classes: Optional[Spellings] = None
    needs_text: bool = False


TRAINING = Tolerance()
# Advice for an empty label that is not tolerated.
NEEDS_LABEL = "give the example a label (thincdialog.MultiLabel.v1 needs none)"
_tolerance: ContextVar[Tolerance] = ContextVar("tolerance", default=TRAINING)


def tolerance() -> Tolerance:
    """Return the current tolerance."""
    return _tolerance.get()


@contextmanager
def tolerating(**more: Any) -> Iterator[None]:
    """Tolerate more problems inside a ``with`` block.

    more (Any): Fields of ``Tolerance``. A field that is None or False is unchanged.
    """
    given = {name: value for name, value in more.items() if value not in (None, False)}
    token = _tolerance.set(tolerance()._replace(**given))
    try:
        yield
    finally:
        _tolerance.reset(token)
