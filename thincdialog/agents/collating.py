"""Model input that a user's function builds from a batch, such as texts with images."""

from copy import copy
from typing import Any, Callable, List, Optional

import numpy as np
from thinc.api import Ops
from thinc.types import Ragged

from ..config.collate import collate_of
from ..contract import CodeError, place_of, wrong_value
from ..errors import ConfigError, Problem
from ..examples.batch import Batch
from ..registry import registry

# A function that takes a batch, whose fields are ``batch.column(name)``, and the tokens of its
# contexts (Ragged; None if there is no [tokenizer]). It returns the model's input: a Ragged, an
# array with one row for each example, or a tuple of these.
Collate = Callable[[Batch, Optional[Ragged]], Any]

registry.collates.makes(Callable)


@registry.collates("thincdialog.OfDataset.v1")
def collate_of_dataset(dataset: str) -> Collate:
    """Use the static method `collate(batch, tokens)` of a data set's class. An agent uses that of
    its training data, if the config and the agent's class name no other function.

    dataset (str): Name of the class in `registry.datasets`.
    RAISES (ConfigError): If there is no such class, or it has no such method.
    RAISES (CodeError): If the method lacks its ``@staticmethod``.
    """
    if dataset in registry.datasets:
        collate = collate_of(registry.datasets.get(dataset))
        if collate is not None:
            return collate
    text = f"'dataset' is {dataset!r}, but no data set of this name has a static method 'collate'"
    hint = "a custom class needs --code FILE (code=FILE in Python)"
    raise ConfigError([Problem("", text, hint)])


def put_together(collate: Collate, batch: Batch, tokens: Optional[Ragged], ops: Ops) -> Any:
    """Call a collate function on a batch, and return its result as the model's input.

    tokens (Optional[Ragged]): Tokens of the contexts, shape (n_tokens, 2), int32.
    RAISES (CodeError): If the function returns another kind of value, or not one row for each
        example; or if no example has a field that it reads, and it returns numbers that are nan.
    """
    lacking: List[str] = []
    shown: Any = copy(batch)

    def column(name: str) -> List[Any]:
        cells = batch.column(name)
        if all(cell is None for cell in cells):
            lacking.append(name)
        return cells

    shown.column = column
    made = collate(shown, tokens)
    parts = made if isinstance(made, tuple) else (made,)
    found = [_on_device(ops, part) for part in parts]
    is_wrong = not found or any(_n_rows(part) != len(batch) for part in found)
    # NumPy makes a nan of None.
    if lacking and (is_wrong or any(map(_has_nan, parts))):
        text = f"{place_of(collate)} needs {' and '.join(map(repr, lacking))}"
        hint = "check the name (a chat has only texts)"
        raise CodeError(f"{text}, which no example here has: {hint}")
    if is_wrong:
        wanted = (
            f"arrays of numbers with one row for each of the {len(batch)} examples, or a Ragged"
        )
        raise wrong_value(collate, made, f"{wanted}, or a tuple of these")
    return tuple(found) if isinstance(made, tuple) else found[0]


def _on_device(ops: Ops, part: Any) -> Any:
    """Return floats as float32 on the model's device, and integers as int32 on the host."""
    if not isinstance(part, np.ndarray):
        return part
    # Mixed types, for example because some examples lack the field.
    if part.dtype.kind not in "biuf":
        return None
    numbers: Any = part
    is_float = part.dtype.kind == "f"
    return ops.asarray(numbers, dtype="float32") if is_float else part.astype("i", copy=False)


def _has_nan(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind == "f" and bool(np.isnan(part).any())


def _n_rows(part: Any) -> int:
    if isinstance(part, Ragged):
        return len(part.lengths)
    shape = getattr(part, "shape", ())
    return shape[0] if shape else -1
