"""What is tolerated while data is read, and is an error in training."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Dict, Iterator, NamedTuple, Optional

from .bad_data import BadData
from .spellings import Spellings


class Tolerance(NamedTuple):
    """What is tolerated. (Data is read when somebody asks a teacher for it, who asks for other
    reasons: so this is told to readers past those between.)

    unlabelled (bool): Examples without a label, so that they can be answered.
    outside_labels (bool): Labels that are not among their candidates.
    empty_labels (bool): Empty lists of labels, for agents that also learn from texts without any.
    bad_data (Optional[Dict[str, BadData]]): Takes by path what cannot be read, whatever the
        teachers' settings; no problem of a file then ends its reading.
    classes (Optional[Spellings]): Those of the labels, if they are classes; None tolerates
        labels that differ only by case or blanks, as replies may.
    needs_text (bool): Whether nothing but text and features is read: other texts are no input.
    """

    unlabelled: bool = False
    outside_labels: bool = False
    empty_labels: bool = False
    bad_data: Optional[Dict[str, BadData]] = None
    classes: Optional[Spellings] = None
    needs_text: bool = False


TRAINING = Tolerance()
# What to do about an empty label that is not tolerated.
NEEDS_LABEL = "give the example a label (thincdialog.MultiLabel.v1 needs none)"
_tolerance: ContextVar[Tolerance] = ContextVar("tolerance", default=TRAINING)


def tolerance() -> Tolerance:
    """What is tolerated now."""
    return _tolerance.get()


@contextmanager
def tolerating(**more: Any) -> Iterator[None]:
    """A stretch in which this is tolerated, too: fields of ``Tolerance``. One that is None or
    False stays as it was."""
    given = {name: value for name, value in more.items() if value not in (None, False)}
    token = _tolerance.set(tolerance()._replace(**given))
    try:
        yield
    finally:
        _tolerance.reset(token)
