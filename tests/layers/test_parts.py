"""Layers side by side, each of which reads a part of the input."""

import numpy as np
import pytest
from thinc.api import Linear, Relu, chain

from tests.layers.test_layers import matrix, tokens
from tests.ops.array_backends import EACH_OPS
from thincdialog.errors import ConfigError
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.parts import Parts


@EACH_OPS
def test_parts_are_their_layers_side_by_side(ops):
    X = (tokens(ops, [4, 1, 7, 2, 3]), matrix(ops), matrix(ops, 3))
    layers = [BagEmbed(4, 12), Linear(5), chain(Relu(2), Linear(3))]
    model = Parts(*layers)
    for node in model.walk():
        node.ops = ops
    model.initialize(X=X)
    assert model.get_dim("nO") == 4 + 5 + 3
    Y, backprop = model.begin_update(X)
    alone = [layer.begin_update(part) for layer, part in zip(layers, X)]
    assert (Y == ops.xp.concatenate([each for each, _ in alone], axis=1)).all()
    dY = ops.asarray2f(np.random.default_rng(1).normal(size=Y.shape).astype("f"))
    names = [(node, name) for node in model.walk() for name in node.grad_names]
    found = backprop(dY)
    whole = [node.get_grad(name).copy() for node, name in names]
    for node, name in names:
        node.get_grad(name)[...] = 0
    starts = (0, 4, 9, 12)
    for number, (_, backprop_part) in enumerate(alone):
        part = ops.as_contig(dY[:, starts[number] : starts[number + 1]])
        expected = backprop_part(part)
        if number:
            assert (found[number] == expected).all()
    for (node, name), gradient in zip(names, whole):
        assert (node.get_grad(name) == gradient).all()


def test_parts_not_one_for_each_layer():
    ops = Linear(1).ops
    with pytest.raises(ConfigError, match="2 parallel layers for 3 input parts"):
        Parts(Linear(2), Linear(2)).initialize(X=(matrix(ops),) * 3)
    with pytest.raises(ConfigError, match="2 parallel layers for 1 input parts"):
        Parts(Linear(2), Linear(2)).initialize(X=matrix(ops))
