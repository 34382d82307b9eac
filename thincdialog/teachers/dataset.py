"""A teacher of data sets that are Python objects (iterables or indexables), or Arrow files."""

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Union

import numpy as np

from ..contract import Returned, called, is_users, wrong_value
from ..errors import ConfigError, DataError
from ..formats.arrow_file import read_arrow
from ..formats.candidates import list_texts
from ..formats.context import tolerance
from ..formats.file_list import file_list
from ..formats.parlai_text import LISTS
from ..formats.tables import missing
from ..formats.wording import short
from ..messages import Episode, Message, wrong_list
from ..registry import registry
from .held_out import HeldOut
from .other_format import NO_TASK, with_other_teacher
from .teacher import Teacher

NAME = "thincdialog.Dataset.v1"
Given = Any  # Any object, so that pydantic does not validate it.


@registry.teachers("thincdialog.Dataset.v1")
def Dataset(
    train: Given = None,
    dev: Given = None,
    test: Given = None,
    text_field: str = "text",
    label_field: str = "label",
    dev_share: float = 0.0,
    test_share: float = 0.0,
    dev_seed: int = 0,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
    streaming: bool = False,
) -> Teacher:
    """Read a data set in which each row is an example: a mapping, or a pair (input, label).

    A data set is the result of a function that is registered in `registry.datasets` and named with
    `@datasets` in `[tasks.x.train]`: an iterable (which yields the same rows each time), or an
    indexable, such as a Dataset of PyTorch. Or it is the path of a .parquet or .arrow file, a
    pattern such as "data/train-*.parquet", or a folder saved by the library datasets (Hugging
    Face). To read such files, pyarrow must be installed.

    The input of a pair is a text, or an array, which becomes `features`. Tensors become NumPy
    arrays, numbers as labels become strings. All fields stay in the messages, so that a collate
    function can use them. It may be a static method `collate(batch, tokens)` of the class that is
    registered for train.

    train (Any): The data set of the split `train`: an object, or a path.
    dev (Any): The data set of the split `dev`.
    test (Any): The data set of the split `test`.
    text_field (str): Name of the text's field; a row without it has the text "".
    label_field (str): Name of the label's field: a label or a list of labels.
    dev_share (float): Fraction of the rows of train to hold out as split `dev`, 0.0 to less than
        1.0; only if no dev is given. A row is drawn by a hash of its number and dev_seed.
    test_share (float): Fraction of the rows of train to hold out as split `test`, drawn in the
        same way; only if no test is given.
    dev_seed (int): Seed of the draws for dev_share and test_share.
    mutators (Optional[Union[List, Dict]]): Mutators to apply in order, each in a section
        `[tasks.x.mutators.name]`.
    streaming (bool): Read the data set for every epoch instead of holding it in memory.
    RAISES (ConfigError): If a share is out of range, or given together with its split's data.
    """
    given = {"train": train, "dev": dev, "test": test}
    shares = HeldOut(dev_share, test_share, dev_seed)
    problems = shares.problems(NAME, given)
    if problems:
        raise ConfigError(problems)

    def rows(split: str, part: str = "") -> Union[IteratedRows, NumberedRows]:
        dataset = given[split]
        is_indexable = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
        kind = NumberedRows if is_indexable and not isinstance(dataset, str) else IteratedRows
        return kind(dataset, part or split, text_field, label_field, part, shares)

    sources = {split: rows(split) for split, dataset in given.items() if dataset is not None}
    for split in shares.splits if train is not None else ():
        sources[split] = rows("train", split)
    return Teacher(
        sources,
        mutators=mutators,
        streaming=streaming,
        single_turn=True,
        origin=NAME,
    )


@dataclass(eq=False)
class DatasetRows:
    """Make an episode of one turn from each row of a data set.

    dataset (Any): See ``Dataset``.
    split (str): The split that is shown, for error messages.
    text_field, label_field (str): See ``Dataset``.
    part (str): The split that is shown, if the rows are divided into several; otherwise "".
    held_out (HeldOut): The division of the rows into splits.
    task (str): Name of the task, for error messages.

    about (str): Description of the part of the data set that is shown; "" for all of it.
    """

    dataset: Any
    split: str
    text_field: str
    label_field: str
    part: str
    held_out: HeldOut
    task: str = NO_TASK

    def __post_init__(self) -> None:
        self.about = self.held_out.about(self.part)
        self.paths: List[str] = []
        self.origin = f"the data set of the split '{self.split}'"
        if isinstance(self.dataset, str):
            is_folder = os.path.isdir(self.dataset)
            self.paths = [self.dataset] if is_folder else file_list(self.dataset)
            self.origin = self.dataset

    def shows(self, number: int) -> bool:
        """Return whether the row with a number belongs to the split that is shown."""
        return not self.part or self.held_out.split_named(str(number)) == self.part

    def episode(self, row: Any, number: int) -> Episode:
        """Make an episode from a row.

        RAISES (DataError): If the row is malformed, or has no input.
        """
        if isinstance(row, tuple) and len(row) == 2:
            key = self.text_field if isinstance(row[0], str) else "features"
            row = {key: row[0], self.label_field: row[1]}
        if not isinstance(row, Mapping):
            wanted = f"a mapping or a pair (input, label) as row {number}"
            if isinstance(self.dataset, str):
                raise DataError(self.origin, f"row {number} is {short(row)}")
            raise wrong_value(_rows_source(self.dataset), row, wanted)
        message = Message((str(name), _plain(value)) for name, value in row.items())
        if isinstance(self.dataset, str):  # Each row of a file has all columns, with None for null.
            message = Message({name: value for name, value in message.items() if value is not None})
        text = message.pop(self.text_field, "")
        if not isinstance(text, str):
            raise self._error(number, f"'{self.text_field}' is {short(text)}, not a string")
        message["text"] = text
        label, hint = message.pop(self.label_field, None), ""
        if isinstance(self.dataset, str) and not number and not text and label is None:
            error = self._error(number, f"has no '{self.text_field}' and no '{self.label_field}'")
            other = with_other_teacher(error, self.dataset, NAME, self.task)
            if other is not error:
                raise other
        if label is not None:
            message["labels"] = _texts(label)
        elif "labels" in message:
            hint = ": if these are the labels, set label_field = 'labels'"
        elif tolerance().empty_labels and not tolerance().unlabelled:
            raise self._error(number, f"has no '{self.label_field}': [] means that it has no label")
        list_texts(message, self.origin, f"row {number}", hint)
        others = [message[name] for name in message if name not in ("id", "text", *LISTS)]
        needs_text = tolerance().needs_text and all(type(each) is str for each in others)
        if needs_text or not others:
            if row.get(self.text_field, "") is None:
                raise self._error(number, f"has no input: '{self.text_field}' is null")
            if self.text_field not in row:
                found = missing(self.text_field, map(str, row), "field")
                raise self._error(number, f"has no input: {found}; set text_field")
        wrong = wrong_list(message)
        if wrong:
            found = f"'{wrong}' is {short(message[wrong])}, not a list of strings"
            hint = f'set label_field = "{wrong}" if it is the label; otherwise, rename it'
            raise self._error(number, f"{found}: {hint}")
        message["id"] = str(message["id"]) if "id" in message else f"{number}/0"
        return [message]

    def _error(self, number: int, text: str) -> DataError:
        return DataError(self.origin, f"row {number} {text}")


class IteratedRows(DatasetRows):
    """Read the rows of files, or of an iterable."""

    def __call__(self) -> Iterator[Episode]:
        """Yield an episode for each row."""
        for number, row in enumerate(self._rows()):
            if self.shows(number):
                yield self.episode(row, number)

    def _rows(self) -> Iterable[Any]:
        dataset = self.dataset
        if isinstance(dataset, str):
            return chain.from_iterable(map(read_arrow, self.paths))
        if not isinstance(dataset, Iterable):
            raise DataError(self.origin, f"is {short(dataset)}: expected an iterable of rows")
        if iter(dataset) is dataset:
            text = "is an iterator, which can be read only once: give a list, or an iterable that "
            raise DataError(self.origin, f"{text}can be read again")
        return dataset


class NumberedRows(DatasetRows):
    """Read the rows of an indexable by number, so that several processes can read at once (see
    ``Sharded``). The rows are counted by ``len()``, because not every data set of PyTorch raises
    an error after its last row."""

    @cached_property
    def _shown_rows(self) -> Any:
        """Numbers of the rows of the split that is shown."""
        n_rows = range(_length(self.dataset))
        return np.array([row for row in n_rows if self.shows(row)]) if self.part else n_rows

    def __len__(self) -> int:
        return len(self._shown_rows)

    def __getitem__(self, number: int) -> Episode:
        row = int(self._shown_rows[number])
        return self.episode(self.dataset[row], row)


def _length(dataset: Any) -> int:
    return called(type(dataset).__len__, _LENGTH, dataset)


def _is_length(value: Any, *given: Any) -> bool:
    return isinstance(value, int) and value >= 0


_LENGTH = Returned("a whole number, 0 or more", _is_length)


def _rows_source(dataset: Any) -> Any:
    """Return the method of a data set that returns its rows, if users' code defines the method;
    otherwise the class of the data set."""
    methods = (getattr(type(dataset), name, None) for name in ("__getitem__", "__iter__"))
    return next((each for each in methods if is_users(each)), type(dataset))


def _check_dataset(dataset: Any, function: Callable) -> Any:
    """Check that a user's function has returned a data set, or the path of one."""
    if not isinstance(dataset, Iterable) and not hasattr(dataset, "__getitem__"):
        raise wrong_value(function, dataset, "an iterable of rows, or their path")
    return dataset


registry.datasets.makes(Any, _check_dataset)


def _plain(value: Any) -> Any:
    """Convert an array or tensor to a NumPy array (floats to float32), and a scalar to a Python
    number."""
    if not hasattr(value, "__array__"):
        return value
    array = np.asarray(value)
    if not array.shape:
        return array.item()
    return array.astype("float32", copy=False) if array.dtype.kind == "f" else array


def _texts(value: Any) -> List[Any]:
    """Return labels as a list, with numbers as strings."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    several = value if isinstance(value, (list, tuple)) else [value]
    return [str(label) if isinstance(label, (int, float)) else label for label in several]
