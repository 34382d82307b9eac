"""The whole training step of the fastText-like classifier: one example after another."""

from typing import Any, Tuple

import numpy as np

from .apart import put_back, take
from .elementary import exp, sigmoid
from .kernel import kernel
from .vectors import add, dot, place, sum_rows

_F = np.float32
# Examples between two meetings of a worker's own output layer with everybody's.
_ALONE = 64


@kernel
def learn_batch(
    weights: Any, tables: Any, output: int, n_classes: int, starts: Any, targets: Any,
    candidates: Any, class_weights: Any, rate: float, grad_clip: float, losses: Any
) -> Tuple[int, float]:  # fmt: skip
    """Learn from examples, each by a step of its own: mean of embeddings, scores of the classes,
    loss, gradient, update. Several workers may do so at once with the same weights, unlocked.

    Every example changes the output layer, whose cache lines would go to and fro between
    workers: each has a copy, whose changes are added to everybody's every few examples.

    weights (Weights), tables (Tuple[Places]): From ``RowsApart.prepare``, of the tokens of
        all texts one after another. The weights are changed in place.
    output (int): Where the output layer's rows begin in the weights, one for each class.
    n_classes (int): Number of classes.
    starts (Ints1d): Where each text begins, and the end of the last; int64.
    targets (Ints1d): The right class of each example, int32.
    candidates (Ints2d): Of each example the right class and then wrong ones, int32, for the
        loss of negative sampling; of width 0 for the softmax over all classes.
    class_weights (Floats1d): Weight of each class's examples, float32.
    rate (float): Learning rate.
    grad_clip (float): Largest norm of an example's gradient; 0 for no limit.
    losses (Floats1d): Loss of each example, float32; written.
    RETURNS (Tuple[int, float]): Examples learnt from: all, or those before the first
        whose loss is not finite, which changes nothing; and the sum of their gradients'
        squared norms before clipping (a row counts as often as the example has it).
    """
    taken = take(weights, tables)
    values, width, places = weights.all_values, weights.width, tables[0].at
    is_shared = weights.least > 0
    n_candidates = candidates.shape[1]
    is_softmax = n_candidates == 0
    n = n_classes if is_softmax else n_candidates
    X = np.empty(width, np.float32)
    dX = np.empty(width, np.float32)
    d = np.empty(n, np.float32)
    rows = np.arange(n).astype(np.int32)
    step, limit = _F(rate), _F(grad_clip)
    everybodys = values[weights.starts[0] + output :][: n_classes * width]
    W = before = everybodys
    if is_shared:
        W, before = W.copy(), W.copy()
    total, n_learnt = 0.0, 0
    for example in range(len(targets)):
        begin, end = starts[example], starts[example + 1]
        share = _F(1) / _F(max(end - begin, 1))
        sum_rows(values, places, begin, end, X)
        for j in range(width):
            X[j] *= share
        if not is_softmax:
            rows = candidates[example]
        _scores(W, rows, X, d)
        right = targets[example]
        loss = _softmax(d, right) if is_softmax else _sigmoids(d)
        weight = class_weights[right]
        loss *= weight
        if not np.isfinite(loss):
            break
        losses[example] = loss
        n_learnt += 1
        of_scores = _F(0)
        for c in range(n):
            d[c] *= weight
            of_scores += d[c] * d[c]
        norm = of_scores * dot(X, X)
        clipped = step
        dX[:] = 0
        if limit > 0 or not is_softmax:  # Two wrong candidates may be the same class.
            for c in range(n):
                add(dX, d[c], W[place(0, rows[c], width) :][:width])
            norm += dot(dX, dX) * share * share * (end - begin)
            if limit > 0 and norm > limit * limit:
                clipped *= limit / _F(np.sqrt(norm))
            for c in range(n):
                add(W[place(0, rows[c], width) :][:width], -clipped * d[c], X)
        else:
            for c in range(n):
                _exchange(dX, d[c], W[place(0, rows[c], width) :][:width], -step * d[c], X)
            norm += dot(dX, dX) * share * share * (end - begin)
        for t in range(begin, end):
            add(values[places[t] :][:width], -clipped * share, dX)
        total += norm
        if is_shared and n_learnt % _ALONE == 0:
            _meet(everybodys, W, before)
    if is_shared:
        _meet(everybodys, W, before)
    put_back(weights, taken)
    return n_learnt, total


@kernel
def _scores(W: Any, rows: Any, X: Any, scores: Any) -> None:
    """Of the classes that have these rows."""
    width = len(X)
    for c in range(len(scores)):
        scores[c] = dot(X, W[place(0, rows[c], width) :][:width])


@kernel
def _exchange(dX: Any, d: Any, w: Any, step: Any, X: Any) -> None:
    """dX += d w, and then w += step X."""
    for j in range(len(X)):
        dX[j] += d * w[j]
        w[j] += step * X[j]


@kernel
def _softmax(scores: Any, right: int) -> Any:
    """Cross-entropy of the right class; the scores become their gradient."""
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
    """Binary cross-entropy, the first being right; the scores become their gradient."""
    loss = _F(0)
    for c in range(len(scores)):
        z = -scores[c] if c == 0 else scores[c]
        loss += max(z, _F(0)) + np.log1p(np.exp(-abs(z)))
        scores[c] = sigmoid(scores[c])
    scores[0] -= _F(1)
    return loss


@kernel
def _meet(everybodys: Any, own: Any, before: Any) -> None:
    """Add what changed since before to everybody's; begin anew with the sum."""
    for j in range(len(own)):
        everybodys[j] += own[j] - before[j]
        own[j] = everybodys[j]
        before[j] = own[j]
