"""The labels of the training data."""

from typing import Iterator, List, Sequence

from ..errors import DataError
from ..messages import column
from ..protocol import Observations
from ..teachers import Teacher


def training_labels(train: Teacher) -> Iterator[str]:
    """All of them, example by example; examples without labels give none."""
    for example in train.examples():
        yield from example.all_labels


def first_labels(observations: Observations) -> List[str]:
    """The first right answer of every training example of a batch."""
    return [answers[0] for answers in column(observations, "labels")]


def check_labels(observations: Observations, labels: List[str], known: Sequence, what: str) -> None:
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
