"""Queries and keys that are rotated by their positions."""

import numpy as np

from tests.ops.array_backends import EACH_OPS
from thincdialog.ops.rotation import rotate


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape)


@EACH_OPS
def test_rotation_sees_only_how_far_tokens_are_apart(ops):
    """The product of a query and a key does not change if both are moved."""
    n_heads, head = 2, 6
    one = draw(1, 3 * n_heads * head)
    QKV = ops.asarray2f(np.repeat(one, 40, axis=0))
    before = ops.to_numpy(QKV).copy()
    back = rotate(ops, QKV, np.arange(40), n_heads)
    turned = ops.to_numpy(QKV).reshape(40, 3, n_heads, head)
    Q, K = turned[:, 0, 1], turned[:, 1, 1]
    products = Q @ K.T  # (40, 40)
    for apart in (0, 1, 7):
        diagonal = np.diagonal(products, apart)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-3, atol=1e-4)
    assert abs(products[0, 7] - products[0, 0]) > 0.1
    assert (turned[:, 2] == before.reshape(40, 3, n_heads, head)[:, 2]).all()
    back(QKV)  # It is a rotation, so its gradient rotates back.
    np.testing.assert_allclose(ops.to_numpy(QKV), before, rtol=1e-4, atol=1e-5)
