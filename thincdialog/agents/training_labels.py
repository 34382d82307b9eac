"""The labels of the training data."""

from typing import Sequence

from ..errors import DataError
from ..examples.batch import Batch
from ..teachers import Teacher


def check_labels(batch: Batch, labels: Sequence[str], known: Sequence, what: str) -> None:
    """See that every label of a batch is among the texts that its example may have.

    known (Sequence): Of each example, its texts (anything with ``in``).
    what (str): Name of these texts, for the error.
    RAISES (DataError): If one is not.
    """
    for index, (label, texts) in enumerate(zip(labels, known)):
        if label not in texts:
            name = batch.ids()[index]
            found = f"has the label {label!r}, which is not among its" if texts else "has no"
            remedy = 'Mend the data, or set candidates = "batch" in [agent]'
            raise DataError("training data", f"example {name} {found} {what}. {remedy}.")


def no_labels(train: Teacher) -> DataError:
    """The error for training data that says nowhere what is right."""
    return DataError(
        train.data_name, "no training example has a label: there is nothing to learn from."
    )
