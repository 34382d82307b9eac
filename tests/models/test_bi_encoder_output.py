"""Models of which scores and their gradient share one place in memory."""

import numpy as np
import pytest

from tests.models import test_poly_encoder, test_re_ranker
from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.bi_encoder import FORGETS_OUTPUT, BiEncoder
from thincdialog.models.cross_encoder import CrossEncoder
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.re_ranker import ReRanker
from thincdialog.models.transformer_tokens import TransformerTokens
from thincdialog.models.vocabulary_size import set_vocabulary


def of_codes():
    tokens = TransformerTokens(8, depth=1, n_heads=2, n_segments=3, dropout=0.0)
    second = CrossEncoder(tokens, dropout=0.0)
    return ReRanker(test_poly_encoder.model(), second, n_best=2)


MODELS = {
    "bi-encoder": lambda: BiEncoder(BagEncoder(width=8, dropout=0.0)),
    "poly-encoder": test_poly_encoder.model,
    "re-ranker": test_re_ranker.model,
    "re-ranker of a poly-encoder": of_codes,
}


@EACH_OPS
@pytest.mark.parametrize("name", MODELS)
def test_models_that_forget_their_output_learn_the_same_where_it_is_written_over(ops, name):
    model = MODELS[name]()
    assert model.attrs[FORGETS_OUTPUT]
    set_vocabulary(model, 20)
    X = ragged([[8, 9], [10], [9]], ops), ragged([[11, 12, 13], [14], [15, 16]], ops)
    model.initialize(X=X)
    parameters = FlatParameters(model)
    d_scores = ops.asarray2f(np.random.default_rng(0).normal(size=(3, 3)))
    found = []
    for is_written_over in (False, True):
        scores, backprop = model.begin_update(X)
        if is_written_over:
            scores[:] = d_scores
        backprop(scores if is_written_over else d_scores)
        found.append(ops.to_numpy(parameters.gradients).tobytes())
        parameters.clear_gradients()
    assert found[0] == found[1]
