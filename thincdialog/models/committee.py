"""Several models that vote."""

from functools import reduce
from operator import add
from typing import Any, Callable, List, Optional, Tuple

import numpy
from thinc.api import Model, Ops
from thinc.types import Array1d, Floats2d, Ints1d, Ragged

from ..layers.gradients import gradient_of_rows
from ..ops.bags import bag_numbers
from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.known_numbers import derived
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
    if isinstance(ops, DialogCupyOps) and isinstance(X, Ragged):
        return _forward_on_device(model, ops, X)
    n_examples = (X.lengths if isinstance(X, Ragged) else X).shape[0]
    chosen = ops.alloc1i(n_examples)  # The member that each goes to, any as likely as another.
    for number in range(1, len(model.layers)):
        chosen[ops.get_dropout_mask((n_examples,), 1 / (number + 1)) == 0] = number
    Y = ops.alloc2f(n_examples, model.get_dim("nO"))
    parts: List[Tuple[Ints1d, Array1d, Callable]] = []
    for number, member in enumerate(model.layers):
        rows = ops.xp.flatnonzero(chosen == number)
        if rows.shape[0]:
            part, places = _take(ops, X, rows)
            Y[rows], backprop_member = member(part, is_train)  # (n_rows, nO)
            parts.append((rows, places, backprop_member))

    def backprop(dY: OutT) -> InT:
        dX = None
        for rows, places, backprop_member in parts:
            d_part = _array(backprop_member(dY[rows]))
            if dX is None:
                dX = ops.xp.zeros(_array(X).shape, dtype=d_part.dtype)
            dX[places] = d_part
        if dX is None:  # no examples
            dX = ops.xp.zeros_like(_array(X))
        return Ragged(dX, X.lengths) if isinstance(X, Ragged) else dX

    return Y, backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    for member in model.layers:
        member.initialize(X=X, Y=Y)
        if member.has_dim("nO"):
            model.set_dim("nO", member.get_dim("nO"))


def _no_backprop(dY: OutT) -> InT:
    raise ValueError("a committee learns only from its outputs in training")


def _take(ops: Ops, X: InT, rows: Ints1d) -> Tuple[InT, Array1d]:
    """Some of the examples, and where they lie in the array of all."""
    if not isinstance(X, Ragged):
        return X[rows], rows
    is_taken = ops.xp.zeros(X.lengths.shape, dtype=bool)
    is_taken[rows] = True
    tokens = ops.xp.flatnonzero(is_taken[bag_numbers(ops, X.lengths, X.dataXd.shape[0])])
    return Ragged(X.dataXd[tokens], X.lengths[rows]), tokens


def _array(X: InT) -> Any:
    return X.dataXd if isinstance(X, Ragged) else X


def _forward_on_device(model: Model[InT, OutT], ops: DialogCupyOps, X: Ragged) -> Tuple[Any, Any]:
    """The host draws, so that it knows who gets what."""
    tokens, n_members = X.dataXd, len(model.layers)
    found = derived(ops, _drawn, tokens, X.lengths, n_members, ops.next_draws())
    in_order, places, *of_members = found  # (n_examples,) twice; and of each member
    scores: List[Any] = []
    parts: List[Tuple[Any, Callable]] = []
    for number, member in enumerate(model.layers):
        rows, own, lengths = of_members[3 * number : 3 * number + 3]
        if lengths.shape[0]:
            of_member, backprop_member = member(Ragged(own, lengths), True)  # (n_rows, nO)
            scores.append(of_member)
            parts.append((rows, backprop_member))
    if not scores:
        empty = ops.alloc2f(0, model.get_dim("nO"))
        return empty, lambda dY: Ragged(ops.no_gradient(tokens), X.lengths)
    Y: Any = ops.xp.concatenate(scores).take(places, axis=0)  # (n_examples, nO)

    def backprop(dY: OutT) -> InT:
        d_parts = ops.xp.take(dY, in_order, axis=0)
        start = 0
        gradients = []
        for each, (rows, backprop_member) in zip(scores, parts):
            d_part = backprop_member(d_parts[start : start + each.shape[0]])
            gradients.append((rows, d_part.dataXd))
            start += each.shape[0]
        return Ragged(gradient_of_rows(ops, tokens, gradients), X.lengths)

    return Y, backprop


def _drawn(tokens: Any, lengths: Any, n_members: int, draws: Any) -> Tuple[Any, ...]:
    """The examples in the order of their members, the place of each among these; and of each
    member the places of its tokens, these tokens, and how many each of its examples has."""
    chosen = draws.integers(n_members, size=len(lengths))
    of_tokens = chosen.repeat(lengths)
    in_order = numpy.argsort(chosen, kind="stable")
    found: List[Any] = [in_order, numpy.argsort(in_order, kind="stable")]
    for number in range(n_members):
        own = (of_tokens == number).nonzero()[0]
        found += [own, tokens[own], lengths[chosen == number]]
    return tuple(found)
