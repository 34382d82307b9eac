"""The input of a model as a user's function puts it together: an image next to a text."""

from typing import Any, Callable, Optional

import numpy as np
from thinc.api import Ops
from thinc.types import Ragged

from ..contract import wrong_value
from ..examples.batch import Batch
from ..registry import registry

# Takes a batch, whose fields are ``batch.column(name)``, and the tokens of its contexts (Ragged;
# None if there is no [tokenizer]); gives the model's input: a Ragged, an array with one row for
# each example, or a tuple of these.
Collate = Callable[[Batch, Optional[Ragged]], Any]

registry.collates.makes(Callable)


def put_together(collate: Collate, batch: Batch, tokens: Optional[Ragged], ops: Ops) -> Any:
    """What a collate function makes of a batch, as the model reads it.

    tokens (Optional[Ragged]): Of the contexts, shape (n_tokens, 2), int32.
    RAISES (CodeError): If it gives something else, or not one row for each example.
    """
    made = collate(batch, tokens)
    parts = made if isinstance(made, tuple) else (made,)
    found = [_on_device(ops, part) for part in parts]
    if not found or any(_n_rows(part) != len(batch) for part in found):
        wanted = (
            f"arrays of numbers with one row for each of the {len(batch)} examples, or a Ragged"
        )
        raise wrong_value(collate, made, f"{wanted}, or a tuple of these")
    return tuple(found) if isinstance(made, tuple) else found[0]


def _on_device(ops: Ops, part: Any) -> Any:
    """Floats as float32 on the device of the model; ids as int32 on the host."""
    if not isinstance(part, np.ndarray):
        return part
    if part.dtype.kind not in "biuf":  # Some example lacked the field, say.
        return None
    numbers: Any = part
    is_float = part.dtype.kind == "f"
    return ops.asarray(numbers, dtype="float32") if is_float else part.astype("i", copy=False)


def _n_rows(part: Any) -> int:
    if isinstance(part, Ragged):
        return len(part.lengths)
    shape = getattr(part, "shape", ())
    return shape[0] if shape else -1
