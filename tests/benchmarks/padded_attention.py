"""An encoder that pays for padding: self-attention and a feed-forward net on rectangles, as
most libraries compute them. What a user would bring with --code."""

from typing import Any

import numpy as np
from thinc.api import Linear, Model, chain
from thinc.initializers import glorot_uniform_init
from thinc.types import Ragged

from thincdialog.layers.fill_empty import fill_empty
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed


def attention_encoder(width: int, depth: int) -> Model:
    """Embeddings, blocks of attention, mean, linear layer: Ragged ids to (n, width)."""
    blocks = [PaddedAttention(width) for _ in range(depth)]
    return chain(fill_empty(), TokenEmbed(width), *blocks, pool("mean"), Linear(width))


def PaddedAttention(width: int) -> Model:
    """One head of attention, and a net of twice the width, each added to its input.

    width (int): Of input and output, shape (n_tokens, width).
    """
    params = dict.fromkeys(("QKV", "W1", "W2"))
    return Model("padded_attention", forward, init=init, dims={"nO": width}, params=params)


def init(model, X=None, Y=None):
    width = model.get_dim("nO")
    for name, rows, columns in (("QKV", 3, 1), ("W1", 2, 1), ("W2", 1, 2)):
        shape = (rows * width, columns * width)
        model.set_param(name, glorot_uniform_init(model.ops, shape) * 0.5)


def forward(model, Xr: Ragged, is_train: bool):
    QKV, W1, W2 = (model.get_param(name) for name in ("QKV", "W1", "W2"))
    lengths = np.asarray(Xr.lengths)
    is_there = np.arange(lengths.max()) < lengths[:, None]  # (n_rows, n_steps)
    X = np.zeros((*is_there.shape, QKV.shape[1]), dtype="f")
    X[is_there] = Xr.dataXd
    scale = np.float32(QKV.shape[1] ** -0.5)
    Q, K, V = np.split(_times(X, QKV.T), 3, axis=2)
    P = Q @ K.transpose(0, 2, 1) * scale
    P += np.where(is_there, np.float32(0), np.float32(-1e9))[:, None]
    P = np.exp(P - P.max(axis=2, keepdims=True))
    P /= P.sum(axis=2, keepdims=True)
    A = X + P @ V
    H = np.maximum(_times(A, W1.T), 0)
    Y = A + _times(H, W2.T)

    def backprop(dYr: Ragged) -> Ragged:
        dY = np.zeros_like(Y)
        dY[is_there] = dYr.dataXd
        dH = _times(dY, W2) * (H > 0)
        dA = dY + _times(dH, W1)
        dP = dA @ V.transpose(0, 2, 1)
        dV = P.transpose(0, 2, 1) @ dA
        dS = P * (dP - (dP * P).sum(axis=2, keepdims=True)) * scale
        d_all = np.concatenate([dS @ K, dS.transpose(0, 2, 1) @ Q, dV], axis=2)
        model.inc_grad("W2", _outer(dY, H))
        model.inc_grad("W1", _outer(dH, A))
        model.inc_grad("QKV", _outer(d_all, X))
        dX: Any = dA + _times(d_all, QKV)
        return Ragged(dX[is_there], Xr.lengths)

    return Ragged(Y[is_there], Xr.lengths), backprop


def _times(X, W):
    """Every cell of a rectangle times a matrix."""
    return (X.reshape(-1, X.shape[2]) @ W).reshape(*X.shape[:2], -1)


def _outer(left, right):
    return left.reshape(-1, left.shape[2]).T @ right.reshape(-1, right.shape[2])
