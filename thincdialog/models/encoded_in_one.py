"""Conversations and replies that go through the layers they share, or have alike, as one
batch."""

import operator
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy
from thinc.api import Model
from thinc.layers.chain import forward as chain_forward
from thinc.types import Ragged

from ..layers import bag_embed, feed_forward, linear, pool, window_block
from ..layers.gradients import no_gradient
from ..layers.twin_layers import TwinLayers, are_twins
from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.gpu import kernels
from ..ops.known_numbers import derived, on_host

# The forward pass of layers with weights, for twins.
_OF_TWINS: Dict[Callable, Callable] = {
    each.forward: each.forward_on_device for each in (linear, feed_forward, window_block)
}
# Layers that make a row of each sequence, zeros of one without tokens.
_POOLING = (bag_embed.forward, pool.forward)


def encode_both(
    encoders: Sequence[Model], X: Tuple[Ragged, Ragged], is_train: bool
) -> Tuple[Tuple[Any, Any], Callable[[Any, Any], Tuple[Any, Any]]]:
    """What two encoders give for a batch each. On a GPU both batches go as one through what
    comes first in both, if it is the same, and on through what differs in its weights alone:
    a larger batch costs little, and a second run as much as the first.

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
    n_twins = 0 if ops.has_exact_products else _n_twins(one[n:], other[n:])
    joined = _Joined(ops, X, have_twins=n_twins > 0)
    n += n_twins
    for pair in zip(one[:n], other):
        joined.run(*pair, is_train)
    outputs, backprops = [], []
    for layers, part in zip((one[n:], other[n:]), joined.parts()):
        output, backprop = _run(layers, part, is_train)
        outputs.append(output)
        backprops.append(backprop)

    def backprop_both(d: Any, d_other: Any) -> Tuple[Any, Any]:
        joined.backprop(backprops[0](d), backprops[1](d_other))
        return tuple(  # type: ignore[return-value]
            Ragged(no_gradient(ops, each.dataXd), each.lengths) for each in X
        )

    return (outputs[0], outputs[1]), backprop_both


class _Joined:
    """Two batches that go through layers as one, the second behind the first.

    ops (DialogCupyOps): Those of the layers.
    X (Tuple[Ragged, Ragged]): Both batches.
    have_twins (bool): Whether there will be layers with weights for either: then the rows of
        examples are made as many of both, so that both products are one call.
    """

    def __init__(self, ops: DialogCupyOps, X: Tuple[Ragged, Ragged], have_twins: bool):
        self._ops, self._have_twins, self._backprops = ops, have_twins, []  # type: ignore[var-annotated]
        self._lengths = X[0].lengths  # Of the examples of the first batch.
        # Examples of both, and where those of the second begin.
        self._n_examples = [each.lengths.shape[0] for each in X]
        self._second = self._n_examples[0]
        arrays = (X[0].dataXd, X[1].dataXd, X[0].lengths, X[1].lengths)
        self._Y: Any = Ragged(*derived(ops, _one_after_the_other, *arrays))

    def run(self, layer: Model, its_other: Model, is_train: bool) -> None:
        """Go through a layer of either encoder."""
        X, is_apart = self._Y, layer is not its_other and not _are_copies(layer, its_other)
        if self._have_twins and isinstance(X, Ragged) and layer._func in _POOLING:
            (lengths,) = derived(self._ops, _as_many_of_both, X.lengths, self._lengths)
            self._second = lengths.shape[0] // 2
            self._Y, backprop_rows = layer(Ragged(X.dataXd, lengths), is_train)
            self._backprops.append(lambda dY: Ragged(backprop_rows(dY).dataXd, X.lengths))
            return
        if is_apart:
            twins = TwinLayers((layer, its_other), self._n_first())
            self._Y, backprop = twins.run(_OF_TWINS[layer._func], X, is_train)
        else:
            self._Y, backprop = layer(X, is_train)
        self._backprops.append(backprop)

    def _n_first(self) -> int:
        """Rows of the first batch, whether of tokens or of examples."""
        if not isinstance(self._Y, Ragged):
            return self._second
        lengths = on_host(self._ops, self._Y.lengths)
        return int(lengths[: self._second].sum())

    def parts(self) -> Tuple[Any, Any]:
        """Rows for examples, or tokens, of the one batch and of the other."""
        Y, n, n_other = self._Y, *self._n_examples
        if not isinstance(Y, Ragged):
            return Y[:n], Y[self._second : self._second + n_other]
        lengths, n_tokens = derived(self._ops, _cut, Y.lengths, self._lengths), self._n_first()
        return Ragged(Y.dataXd[:n_tokens], lengths[0]), Ragged(Y.dataXd[n_tokens:], lengths[1])

    def backprop(self, d: Any, d_other: Any) -> None:
        """Back through all layers, from the gradients of both parts."""
        if isinstance(self._Y, Ragged):
            together = self._ops.xp.concatenate([d.dataXd, d_other.dataXd])
            dY: Any = Ragged(together, self._Y.lengths)
        else:
            dY = kernels.join_rows(d, d_other, self._second, self._Y.shape[0])
        for backprop_layer in reversed(self._backprops):
            dY = backprop_layer(dY)


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


def _n_twins(one: Sequence[Model], other: Sequence[Model]) -> int:
    """With how many layers both go on that are the same, or differ in their weights alone."""
    n = 0
    for layer, its_other in zip(one, other):
        is_known = layer._func in _OF_TWINS and are_twins(layer, its_other)
        if not (is_known or layer is its_other or _are_copies(layer, its_other)):
            break
        n += 1
    return n


def _are_copies(one: Model, other: Model) -> bool:
    """Of a layer without weights that treats each example by itself, as ours do."""
    is_ours = one._func.__module__.startswith(f"{__package__.partition('.')[0]}.layers.")
    return is_ours and are_twins(one, other) and not (one.layers or one.param_names)


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


def _one_after_the_other(
    tokens: Any, other_tokens: Any, lengths: Any, other_lengths: Any
) -> Tuple[Any, ...]:
    pairs = (tokens, other_tokens), (lengths, other_lengths)
    return tuple(numpy.concatenate(pair) for pair in pairs)


def _cut(lengths: Any, first: Any) -> Tuple[Any, ...]:
    return lengths[: len(first)], lengths[len(first) :]


def _as_many_of_both(lengths: Any, first: Any) -> Tuple[Any, ...]:
    """Empty sequences behind those of the first batch, and of the second."""
    parts = _cut(lengths, first)
    most = max(map(len, parts))
    return (numpy.concatenate([numpy.pad(part, (0, most - len(part))) for part in parts]),)
