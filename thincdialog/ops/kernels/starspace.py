"""The whole training step of the embedding agent: examples one after another, in place."""

import numpy as np

from .kernel import kernel

# Shorter vectors are not stretched to length 1: as in the layer L2Normalise.
_SHORTEST = np.float32(1e-6)


@kernel
def train_examples(
    values,
    squares,
    context_table,
    label_table,
    width,
    context_ids,
    context_starts,
    label_ids,
    label_starts,
    candidates,
    is_cosine,
    is_softmax,
    power,
    scale,
    margin,
    rate,
    eps,
    losses,
):
    """Learn from examples, each by a step of its own: scores, loss, gradient, and update
    of the rows that it has. Several threads or processes may do so at once with the same
    weights: each reads and writes nothing else but its own examples, nothing is locked.

    values (Floats1d): All weights, float32; changed in place.
    squares (Floats1d): As long, for Adagrad: a row's first place has the sum of the means
        of its squared gradients. Empty for plain SGD.
    context_table (int): Where the table of the contexts begins in ``values``.
    label_table (int): Where that of the labels begins; the same if they share one.
    width (int): Floats in a row of either.
    context_ids (Ints1d): Tokens of all contexts one after another, int32.
    context_starts (Ints1d): Where each begins, and the end of the last; int64.
    label_ids (Ints1d): Tokens of all labels, int32.
    label_starts (Ints1d): Where each begins, and the end of the last; int64.
    candidates (Ints2d): Of each example the right label and then the wrong ones, int32,
        shape (n_examples, 1 + n_negatives).
    is_cosine (bool): Whether a score is a cosine; else it is a dot product.
    is_softmax (bool): Whether the loss is the softmax; else it is the hinge.
    power (float): A text's vector is the sum of its n rows divided by n to this.
    scale (float): Factor of the score.
    margin (float): Of the hinge.
    rate (float): Learning rate.
    eps (float): Added to a row's squares before the root.
    losses (Floats1d): Loss of each example, float32; written.
    RETURNS (Tuple[int, float]): Examples learnt from: all, or those before the first
        whose loss is not finite, which changes nothing; and the sum over them of the
        squared norm of the gradient of one row of each bag.
    """
    n_candidates = candidates.shape[1]
    X = np.empty(width, np.float32)
    Y = np.empty((n_candidates, width), np.float32)
    dX = np.empty(width, np.float32)
    dY = np.empty(width, np.float32)
    factors = np.empty(n_candidates, np.float32)
    cosines = np.empty(n_candidates, np.float32)
    scores = np.empty(n_candidates, np.float32)
    d_scores = np.empty(n_candidates, np.float32)
    scale, rate, eps = np.float32(scale), np.float32(rate), np.float32(eps)
    margin, power = np.float32(margin), np.float32(power)
    total = 0.0
    for example in range(len(candidates)):
        begin, end = context_starts[example], context_starts[example + 1]
        _sum_rows(values, context_table, context_ids, begin, end, X)
        factor, is_free = _factor(X, end - begin, power, is_cosine)
        for c in range(n_candidates):
            label = candidates[example, c]
            first, last = label_starts[label], label_starts[label + 1]
            _sum_rows(values, label_table, label_ids, first, last, Y[c])
            factors[c], _ = _factor(Y[c], last - first, power, is_cosine)
            cosines[c] = factor * factors[c] * _dot(X, Y[c])
            scores[c] = scale * cosines[c]
        loss = _softmax(scores, d_scores) if is_softmax else _hinge(scores, margin, d_scores)
        if not np.isfinite(loss):
            return example, total
        losses[example] = loss
        # Everything is a sum of X and Y[c], so one pass over each is enough:
        # dX = f (sum_c d_c f_c Y_c - X f sum_c d_c cos_c), the latter where X has length 1.
        along = np.float32(0)
        dX[:] = 0
        for c in range(n_candidates):
            d = scale * d_scores[c]
            if d != 0:
                along += d * cosines[c]
                _add(dX, factor * factors[c] * d, Y[c])
        if along != 0 and is_free:
            _add(dX, -factor * factor * along, X)
        for c in range(n_candidates):
            d = scale * d_scores[c]
            if d == 0:
                continue
            label = candidates[example, c]
            first, last = label_starts[label], label_starts[label + 1]
            _, is_free = _factor(Y[c], last - first, power, is_cosine)
            own = factors[c] * factors[c] * d * cosines[c] if is_free else np.float32(0)
            other = factors[c] * d * factor
            for j in range(width):
                dY[j] = other * X[j] - own * Y[c, j]
            total += _update(values, squares, label_table, label_ids, first, last, dY, rate, eps)
        total += _update(values, squares, context_table, context_ids, begin, end, dX, rate, eps)
    return len(candidates), total


@kernel
def _sum_rows(values, table, ids, begin, end, X):
    """Sum of the table's rows of some tokens, into X."""
    width = len(X)
    X[:] = 0
    t = begin
    while t + 4 <= end:  # Four at a time: X is read and written less often.
        a = values[_place(table, ids[t], width) :][:width]
        b = values[_place(table, ids[t + 1], width) :][:width]
        c = values[_place(table, ids[t + 2], width) :][:width]
        d = values[_place(table, ids[t + 3], width) :][:width]
        for j in range(width):
            X[j] += (a[j] + b[j]) + (c[j] + d[j])
        t += 4
    while t < end:
        a = values[_place(table, ids[t], width) :][:width]
        for j in range(width):
            X[j] += a[j]
        t += 1


@kernel
def _place(table, row, width):
    return table + np.int64(row) * width


@kernel
def _factor(X, n, power, is_cosine):
    """What a sum of n rows is multiplied by, and whether that makes its length 1."""
    pooled = np.float32(max(n, 1)) ** -power
    if not is_cosine:
        return pooled, False
    length = pooled * np.sqrt(_dot(X, X))
    return pooled / max(length, _SHORTEST), length > _SHORTEST


@kernel
def _dot(X, Y):
    total = np.float32(0)
    for j in range(len(X)):
        total += X[j] * Y[j]
    return total


@kernel
def _add(X, factor, Y):
    for j in range(len(X)):
        X[j] += factor * Y[j]


@kernel
def _hinge(scores, margin, d_scores):
    """Mean over the wrong ones of how far each comes into the right one's margin."""
    n = len(scores) - 1
    loss, n_within, share = np.float32(0), 0, np.float32(1 / max(n, 1))
    for c in range(1, n + 1):
        excess = scores[c] - scores[0] + margin
        d_scores[c] = 0
        if not excess <= 0:
            loss += excess
            n_within += 1
            d_scores[c] = share
    d_scores[0] = -share * n_within
    return loss * share


@kernel
def _softmax(scores, d_scores):
    """Cross-entropy of the first, the right one."""
    high = scores.max()
    total = np.float32(0)
    for c in range(len(scores)):
        d_scores[c] = np.exp(scores[c] - high)
        total += d_scores[c]
    for c in range(len(scores)):
        d_scores[c] /= total
    d_scores[0] -= 1
    return np.log(total) + high - scores[0]


@kernel
def _update(values, squares, table, ids, begin, end, d, rate, eps):
    """Step of the rows of a text, all of which have the same gradient."""
    width, square = len(d), _dot(d, d)
    mean = square / np.float32(width)
    step = rate
    for t in range(begin, end):
        place = _place(table, ids[t], width)
        if len(squares):
            squares[place] += mean
            step = rate / np.sqrt(squares[place] + eps)
        row = values[place:][:width]
        for j in range(width):
            row[j] -= step * d[j]
    return square
