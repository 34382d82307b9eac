"""The labels of the training data."""

from typing import Any, Dict, Hashable, List, MutableMapping, Sequence, Tuple
from weakref import WeakKeyDictionary

import numpy as np

from ..columns import PickedColumn, RowNumbers, choose, derive
from ..errors import DataError
from ..messages import column
from ..protocol import Observations
from ..teachers import Teacher


def with_labels(observations: Observations) -> Observations:
    """Those that have ``labels`` to learn from."""
    labels = column(observations, "labels")
    if _all_of_data_labelled(labels):
        return observations
    known = _labelled(labels)
    if len(known) == len(observations):
        return observations
    return [observations[row] for row in known.tolist()]


def first_labels(observations: Observations) -> Sequence[str]:
    """The first right answer of every training example of a batch."""
    return derive("first", _firsts, column(observations, "labels"))


def known_labels(observations: Observations) -> Tuple[np.ndarray, Sequence[str]]:
    """Which observations have ``labels``, shape (n_known,), int64, and the first of each."""
    labels = column(observations, "labels")
    known = _labelled(labels)
    if len(known) < len(labels):
        labels = choose(labels, known)
    return known, derive("first", _firsts, labels)


def _labelled(labels: Sequence[Any]) -> np.ndarray:
    return np.flatnonzero(_COUNTS.of(labels, _count))


# How many labels each example has: the same for every agent.
_COUNTS = RowNumbers()


# Whether all examples of a column of the data have one.
_IS_LABELLED: MutableMapping[Any, Dict[Hashable, bool]] = WeakKeyDictionary()


def _all_of_data_labelled(labels: Sequence[Any]) -> bool:
    """Whether no example of the data that a batch is of lacks a label; False if that would
    take long to find out."""
    if not isinstance(labels, PickedColumn) or not isinstance(labels.values, list):
        return False
    owner, key, _, _ = labels.origin
    known = _IS_LABELLED.setdefault(owner, {})
    if key not in known:
        known[key] = all(labels.values)
    return known[key]


def _count(labels: Sequence[Any]) -> List[int]:
    return [len(answers or ()) for answers in labels]


def _firsts(labels: Sequence[Sequence[str]]) -> List[str]:
    return [answers[0] for answers in labels]


def check_labels(
    observations: Observations, labels: Sequence[str], known: Sequence, what: str
) -> None:
    """See that every label of a batch is among the texts that its example may have.

    known (Sequence): Of each example, its texts (anything with ``in``).
    what (str): Name of these texts, for the error.
    RAISES (DataError): If one is not.
    """
    for index, (label, texts) in enumerate(zip(labels, known)):
        if label not in texts:
            name = column(observations, "id")[index]
            found = f"has the label {label!r}, which is not among its" if texts else "has no"
            remedy = 'Mend the data, or set candidates = "batch" in [agent]'
            raise DataError("training data", f"example {name} {found} {what}. {remedy}.")


def no_labels(train: Teacher) -> DataError:
    """The error for training data that says nowhere what is right."""
    return DataError(
        train.data_name, "no training example has a label: there is nothing to learn from."
    )
