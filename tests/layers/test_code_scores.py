"""Scores by the context vectors that a candidate attends to."""

import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS
from thincdialog.layers.code_scores import CodeScores


def slowly(contexts, candidates):
    Y = np.zeros((len(contexts), len(candidates)))
    for i, codes in enumerate(contexts.reshape(len(contexts), -1, candidates.shape[1])):
        for j, candidate in enumerate(candidates):
            weights = np.exp(codes @ candidate)
            found = (weights / weights.sum()) @ codes
            Y[i, j] = found @ candidate
    return Y


@EACH_OPS
@pytest.mark.parametrize("is_train", [True, False])
def test_code_scores_are_products_with_the_attended_codes(ops, is_train):
    rng = np.random.default_rng(0)
    contexts, candidates = rng.normal(size=(4, 6)), rng.normal(size=(5, 3))
    dY = rng.normal(size=(4, 5))
    X = ops.asarray2f(contexts), ops.asarray2f(candidates)
    Y, backprop = CodeScores()(X, is_train=is_train)
    np.testing.assert_allclose(ops.to_numpy(Y), slowly(contexts, candidates), rtol=1e-4, atol=1e-5)
    gradients = map(ops.to_numpy, backprop(ops.asarray2f(dY)))
    for part, gradient in zip((contexts, candidates), gradients):
        for cell in np.ndindex(part.shape):
            before, values = part[cell], []
            for moved in (1e-5, -1e-5):
                part[cell] = before + moved
                values.append((slowly(contexts, candidates) * dY).sum())
            part[cell] = before
            slope = (values[0] - values[1]) / 2e-5
            np.testing.assert_allclose(gradient[cell], slope, rtol=1e-3, atol=1e-4)
