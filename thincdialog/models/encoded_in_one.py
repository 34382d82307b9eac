"""Conversations and replies that go through the layers they share as one batch."""

import operator
from typing import Any, Callable, List, Sequence, Tuple

import numpy
from thinc.api import Model
from thinc.layers.chain import forward as chain_forward
from thinc.types import Ragged

from ..layers.gradients import no_gradient
from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.known_numbers import derived, on_host


def encode_both(
    encoders: Sequence[Model], X: Tuple[Ragged, Ragged], is_train: bool
) -> Tuple[Tuple[Any, Any], Callable[[Any, Any], Tuple[Any, Any]]]:
    """What two encoders give for a batch each. On a GPU, what comes first in both, if it is the
    same, runs once: for it a larger batch costs little, and a second run as much as the first.

    encoders (Sequence[Model]): Two; Ragged to Floats2d.
    X (Tuple[Ragged, Ragged]): Ids and segments, int32.
    RETURNS (Tuple[Tuple[Any, Any], Callable]): Their outputs, and the function that takes the
        gradients of these to those of X.
    """
    one, other = map(_layers, encoders)
    n = _n_in_common(one, other)
    ops = encoders[0].ops
    if not n or not isinstance(ops, DialogCupyOps):
        first, backprop_first = encoders[0](X[0], is_train)
        second, backprop_second = encoders[1](X[1], is_train)
        return (first, second), lambda d, d_other: (backprop_first(d), backprop_second(d_other))
    joined, backprop_shared = _run(one[:n], _joined(ops, X), is_train)
    outputs, backprops = [], []
    parts, backprop_parts = _split(ops, joined, X)
    for layers, part in zip((one[n:], other[n:]), parts):
        output, backprop = _run(layers, part, is_train)
        outputs.append(output)
        backprops.append(backprop)

    def backprop_both(d: Any, d_other: Any) -> Tuple[Any, Any]:
        backprop_shared(backprop_parts(backprops[0](d), backprops[1](d_other)))
        return tuple(  # type: ignore[return-value]
            Ragged(no_gradient(ops, each.dataXd), each.lengths) for each in X
        )

    return (outputs[0], outputs[1]), backprop_both


def _layers(encoder: Model) -> List[Model]:
    """The layers of a chain, and those of chains in it."""
    if encoder._func is not chain_forward:
        return [encoder]
    return [layer for each in encoder.layers for layer in _layers(each)]


def _n_in_common(one: Sequence[Model], other: Sequence[Model]) -> int:
    """How many layers both begin with; layers of ours without weights may be copies. 0 if they
    share none."""
    n = 0
    for layer, its_other in zip(one, other):
        if layer is not its_other and not _are_copies(layer, its_other):
            break
        n += 1
    return n if any(map(operator.is_, one[:n], other[:n])) else 0


def _are_copies(one: Model, other: Model) -> bool:
    """Of a layer without weights that treats each example by itself, as ours do."""
    is_ours = one._func.__module__.startswith(f"{__package__.partition('.')[0]}.layers.")
    same = one._func is other._func and one.attrs == other.attrs
    dims = [{name: each.maybe_get_dim(name) for name in each.dim_names} for each in (one, other)]
    have_more = any(each.layers or each.param_names or each.ref_names for each in (one, other))
    return is_ours and same and dims[0] == dims[1] and not have_more


def _run(layers: Sequence[Model], X: Any, is_train: bool) -> Tuple[Any, Callable[[Any], Any]]:
    backprops: List[Callable] = []
    for layer in layers:
        X, backprop_layer = layer(X, is_train)
        backprops.append(backprop_layer)

    def backprop(dX: Any) -> Any:
        for backprop_layer in reversed(backprops):
            dX = backprop_layer(dX)
        return dX

    return X, backprop


def _joined(ops: DialogCupyOps, X: Tuple[Ragged, Ragged]) -> Ragged:
    one, other = X
    arrays = (one.dataXd, other.dataXd, one.lengths, other.lengths)
    return Ragged(*derived(ops, _one_after_the_other, *arrays))


def _split(
    ops: DialogCupyOps, Y: Any, X: Tuple[Ragged, Ragged]
) -> Tuple[Tuple[Any, Any], Callable[[Any, Any], Any]]:
    """Rows for examples, or tokens, of the one batch and of the other."""
    concatenate, n = ops.xp.concatenate, X[0].lengths.shape[0]
    if not isinstance(Y, Ragged):
        return (Y[:n], Y[n:]), lambda d, d_other: concatenate([d, d_other])
    lengths = derived(ops, _cut, Y.lengths, X[0].lengths)
    n_tokens, data = int(on_host(ops, lengths[0]).sum()), Y.dataXd
    parts = Ragged(data[:n_tokens], lengths[0]), Ragged(data[n_tokens:], lengths[1])

    def backprop(d: Ragged, d_other: Ragged) -> Ragged:
        return Ragged(concatenate([d.dataXd, d_other.dataXd]), Y.lengths)

    return parts, backprop


def _one_after_the_other(
    tokens: Any, other_tokens: Any, lengths: Any, other_lengths: Any
) -> Tuple[Any, ...]:
    pairs = (tokens, other_tokens), (lengths, other_lengths)
    return tuple(numpy.concatenate(pair) for pair in pairs)


def _cut(lengths: Any, first: Any) -> Tuple[Any, ...]:
    return lengths[: len(first)], lengths[len(first) :]
