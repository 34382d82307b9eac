"""An ensemble of models that vote."""

from functools import reduce
from operator import add
from typing import Any, Callable, List, Optional, Tuple

import numpy
from thinc.api import Model, Ops
from thinc.types import Floats2d, Ragged
from thinc.util import is_numpy_array

from ..ops.bags import bag_numbers
from ..ops.devices import on_host, upload
from ..ops.dialog_ops import draw_mask
from ..registry import registry

InT = Any
OutT = Floats2d


@registry.models("thincdialog.Committee.v1")
def Committee(members: List[Model]) -> Model[InT, OutT]:
    """Build an ensemble: train each member on its own share of the examples, and average their
    scores for predictions. It beats its best member if the members are of different kinds.

    In training, each example goes to one member, drawn at random. So no member relies on the
    others, and a batch costs as much as with a single member. Because a member sees only some of
    the examples of an epoch, train for more epochs and with larger batches. Do not use an ensemble
    as the encoder of a bi-encoder, whose two sides would draw different members.

    members (List[Model]): One or more models with the same input and the same output width, such
        as ``thincdialog.Classifier.v1``.
    X (Any): Input of the members: Ragged, or an array with a row for each example.
    RETURNS (Model[Any, Floats2d]): Output shape (n_examples, nO).
    RAISES (ValueError): If there are no members.
    """
    if not members:
        raise ValueError("a committee needs one member or more, got none")
    return Model("committee", forward, init=init, layers=members, dims={"nO": None})


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    if not is_train:
        scores = reduce(add, (member.predict(X) for member in model.layers))
        return scores / len(model.layers), _no_backprop
    ops = model.ops
    n_examples = (X.lengths if isinstance(X, Ragged) else X).shape[0]
    # Draw a member for each example, all with the same probability.
    chosen = numpy.zeros(n_examples, dtype="i")
    for number in range(1, len(model.layers)):
        chosen[draw_mask(ops, (n_examples,), 1 / (number + 1)) == 0] = number
    Y = ops.alloc2f(n_examples, model.get_dim("nO"))
    parts: List[Tuple[Any, Any, Callable]] = []
    for number, member in enumerate(model.layers):
        rows = numpy.flatnonzero(chosen == number)
        if len(rows):
            part, places = _take(ops, X, rows)
            at = _index(ops, Y, rows)
            Y[at], backprop_member = member(part, is_train)  # (n_rows, nO)
            parts.append((at, places, backprop_member))

    def backprop(dY: OutT) -> InT:
        has_ids = _array(X).dtype.kind == "i"  # Ids have no gradient.
        dX: Any = numpy.zeros_like(on_host(_array(X))) if has_ids else ops.xp.zeros_like(_array(X))
        for rows, places, backprop_member in parts:
            d_part = _array(backprop_member(dY[rows]))
            if not has_ids:
                dX[places] = d_part
        return Ragged(dX, X.lengths) if isinstance(X, Ragged) else dX

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    for member in model.layers:
        member.initialize(X=X, Y=Y)
        if member.has_dim("nO"):
            model.set_dim("nO", member.get_dim("nO"))


def _no_backprop(dY: OutT) -> InT:
    raise ValueError("a committee learns only from its outputs in training")


def _take(ops: Ops, X: InT, rows: Any) -> Tuple[InT, Any]:
    """Return some of the examples, and their positions in the array of all examples."""
    if not isinstance(X, Ragged):
        at = _index(ops, X, rows)
        return X[at], at
    lengths: Any = on_host(X.lengths)
    is_taken = numpy.zeros(lengths.shape, dtype=bool)
    is_taken[rows] = True
    tokens = _index(ops, X.dataXd, numpy.flatnonzero(is_taken[bag_numbers(lengths)]))
    return Ragged(X.dataXd[tokens], lengths[rows]), tokens


def _index(ops: Ops, array: Any, rows: Any) -> Any:
    """Return row numbers on the device of the array."""
    return rows if is_numpy_array(array) else upload(ops, rows)[0]


def _array(X: InT) -> Any:
    return X.dataXd if isinstance(X, Ragged) else X
