"""The labels of the training data."""

from typing import Iterator

from ..errors import DataError
from ..teachers import Teacher


def training_labels(train: Teacher) -> Iterator[str]:
    """All of them, example by example; examples without labels give none."""
    for example in train.examples():
        yield from example.all_labels


def no_labels(train: Teacher) -> DataError:
    """The error for training data that says nowhere what is right."""
    return DataError(
        train.data_name, "no training example has a label: there is nothing to learn from."
    )
