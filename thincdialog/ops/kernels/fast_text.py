"""The training step of the fastText classifier in one kernel, one example after another."""

from typing import Any, Tuple

import numpy as np

from .apart import meet, rows_of
from .elementary import exp, sigmoid
from .kernel import kernel
from .vectors import add, dot, floats_at, sum_rows

_F = np.float32
# The number of examples after which copies are merged with the weights. With 1,000, four workers
# trained a worse model.
_MERGE_EVERY = 256


@kernel
def learn_batch(
    copies: Any, tables: Any, starts: Any, targets: Any, candidates: Any,
    class_weights: Any, rate: float, grad_clip: float, losses: Any
) -> Tuple[int, float]:  # fmt: skip
    """Train on examples, one step for each: mean of embeddings, scores of the classes, loss,
    gradient, update. Several workers may train the same weights at once, without locks.

    copies (Copies), tables (Tuple[FoundTokens, FoundTokens]): From ``RowsApart.prepare``, for
        the tokens of all texts one after another, and for all classes (the rows of the output
        layer). The weights are changed in place.
    starts (Ints1d): Index of each text's first token, and the end of the last text; int64.
    targets (Ints1d): The right class of each example, int32.
    candidates (Ints2d): The right class of each example, then wrong ones, int32, for the loss
        with negative sampling; of width 0 for the softmax over all classes.
    class_weights (Floats1d): Weight of each class's examples, float32.
    rate (float): Learning rate.
    grad_clip (float): Largest norm of an example's gradient; 0 for no limit.
    losses (Floats1d): Loss of each example, float32; written.
    RETURNS (Tuple[int, float]): Number of examples trained on: all, or those before the first
        example whose loss is not finite, which changes nothing; and the sum of the squared norms of
        their gradients before clipping (a row counts once for each time that it is in an example).
    """
    width = copies.width
    words, classes = rows_of(tables[0], width), rows_of(tables[1], width)
    n_candidates = candidates.shape[1]
    is_softmax = n_candidates == 0
    n = len(classes) if is_softmax else n_candidates
    rows = np.arange(n).astype(np.int32)
    X = np.empty(width, np.float32)
    dX = np.empty(width, np.float32)
    d = np.empty(n, np.float32)
    step, limit = _F(rate), _F(grad_clip)
    total, n_trained = 0.0, 0
    for example in range(len(targets)):
        begin, end = starts[example], starts[example + 1]
        share = _F(1) / _F(max(end - begin, 1))
        sum_rows(words, begin, end, X)
        for j in range(width):
            X[j] *= share
        if not is_softmax:
            rows = candidates[example]
        _scores(classes, rows, X, d)
        right = targets[example]
        loss = _softmax(d, right) if is_softmax else _sigmoids(d)
        weight = class_weights[right]
        loss *= weight
        if not np.isfinite(loss):
            break
        losses[example] = loss
        n_trained += 1
        of_scores = _F(0)
        for c in range(n):
            d[c] *= weight
            of_scores += d[c] * d[c]
        norm = of_scores * dot(X, X)
        clipped = step
        dX[:] = 0
        # Two wrong candidates may be the same class: read all rows before updating one.
        if limit > 0 or not is_softmax:
            for c in range(n):
                add(dX, d[c], floats_at(classes[rows[c]], width))
            norm += dot(dX, dX) * share * share * (end - begin)
            if limit > 0 and norm > limit * limit:
                clipped *= limit / _F(np.sqrt(norm))
            for c in range(n):
                add(floats_at(classes[rows[c]], width), -clipped * d[c], X)
        else:
            for c in range(n):
                _exchange(dX, d[c], floats_at(classes[rows[c]], width), -step * d[c], X)
            norm += dot(dX, dX) * share * share * (end - begin)
        for t in range(begin, end):
            add(floats_at(words[t], width), -clipped * share, dX)
        total += norm
        if n_trained % _MERGE_EVERY == 0:
            meet(copies)
    meet(copies)
    return n_trained, total


@kernel
def _scores(classes: Any, rows: Any, X: Any, scores: Any) -> None:
    """Compute the scores of the classes that have these rows."""
    width = len(X)
    for c in range(len(scores)):
        scores[c] = dot(X, floats_at(classes[rows[c]], width))


@kernel
def _exchange(dX: Any, d: Any, w: Any, step: Any, X: Any) -> None:
    """Compute dX += d w, and then w += step X."""
    for j in range(len(X)):
        dX[j] += d * w[j]
        w[j] += step * X[j]


@kernel
def _softmax(scores: Any, right: int) -> Any:
    """Return the cross-entropy of the right class, and overwrite the scores with their gradient."""
    high, of_right = scores.max(), scores[right]
    total = _F(0)
    for c in range(len(scores)):
        scores[c] = exp(scores[c] - high)
        total += scores[c]
    for c in range(len(scores)):
        scores[c] /= total
    scores[right] -= _F(1)
    return np.log(total) + high - of_right


@kernel
def _sigmoids(scores: Any) -> Any:
    """Return the binary cross-entropy, in which only the first class is right, and overwrite the
    scores with their gradient."""
    loss = _F(0)
    for c in range(len(scores)):
        z = -scores[c] if c == 0 else scores[c]
        loss += max(z, _F(0)) + np.log1p(np.exp(-abs(z)))
        scores[c] = sigmoid(scores[c])
    scores[0] -= _F(1)
    return loss
