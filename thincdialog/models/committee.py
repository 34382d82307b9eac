"""Several models that vote."""

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
    """Models for the same task, each of which learns by itself; their scores are
    averaged for predictions. Better than its best member if they are of different kinds.

    In training, each example goes to one member, drawn at random: none relies on the others,
    and a batch costs what one member costs. A member sees few examples in an epoch: give it
    more epochs, and larger batches. Not for the inside of a bi-encoder, which has two sides.

    members (List[Model]): One or more, with the same input and the same width of
        output, such as ``thincdialog.Classifier.v1``.
    X (Any): What the members take: Ragged, or an array with a row for each example.
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
    # The member that each goes to, any as likely as another.
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
        has_ids = _array(X).dtype.kind == "i"  # They have no gradient.
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
    """Some of the examples, and where they lie in the array of all."""
    if not isinstance(X, Ragged):
        at = _index(ops, X, rows)
        return X[at], at
    lengths: Any = on_host(X.lengths)
    is_taken = numpy.zeros(lengths.shape, dtype=bool)
    is_taken[rows] = True
    tokens = _index(ops, X.dataXd, numpy.flatnonzero(is_taken[bag_numbers(lengths)]))
    return Ragged(X.dataXd[tokens], lengths[rows]), tokens


def _index(ops: Ops, array: Any, rows: Any) -> Any:
    """Row numbers where the array is."""
    return rows if is_numpy_array(array) else upload(ops, rows)[0]


def _array(X: InT) -> Any:
    return X.dataXd if isinstance(X, Ragged) else X
