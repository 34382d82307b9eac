"""Conversations and replies that go through the layers they share as one batch."""

import numpy as np
import pytest

from tests.ops.array_backends import backend, ragged
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.cnn_encoder import CNNEncoder
from thincdialog.models.poly_encoder import PolyEncoder
from thincdialog.models.transformer_tokens import TransformerTokens
from thincdialog.models.vocabulary_size import set_vocabulary

MODELS = {
    "chain": lambda: BiEncoder(BagEncoder(8, depth=1), share="all"),
    "one encoder": lambda: BiEncoder(BagEncoder(8, depth=1), share="all", normalise=False),
    "tables alone": lambda: BiEncoder(BagEncoder(8, depth=1)),
    "windows": lambda: BiEncoder(CNNEncoder(8, depth=1, dropout=0, pooling="max+mean")),
    "tokens": lambda: PolyEncoder(TransformerTokens(8, depth=1, n_heads=2, dropout=0), n_codes=3),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_encoded_in_one_has_the_gradients_of_two_runs(name):
    found = []
    for gpu_id in (-1, 0):
        with backend(gpu_id) as ops:
            model = MODELS[name]()
        X = ragged([[1, 2, 5], [], [4]], ops), ragged([[3], [2, 2, 1, 6]], ops)
        set_vocabulary(model, 7)
        model.initialize(X=X)
        draw = np.random.default_rng(0)
        for node in model.walk():
            for param in node.param_names:
                shape = node.get_param(param).shape
                node.set_param(param, ops.asarray(draw.normal(size=shape).astype("f")))
        scores, backprop = model.begin_update(X)
        given = backprop(ops.asarray2f(np.random.default_rng(1).normal(size=(3, 2))))
        assert [each.dataXd.shape for each in given] == [each.dataXd.shape for each in X]
        gradients = [node.get_grad(param) for node in model.walk() for param in node.param_names]
        found.append([ops.to_numpy(each) for each in (scores, *gradients)])
    for on_host, on_device in zip(*found):
        np.testing.assert_allclose(on_device, on_host, rtol=1e-3, atol=1e-4)
