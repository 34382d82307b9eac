"""The training step of the StarSpace agent in one kernel, one example after another, in place."""

import numpy as np

from .apart import meet, rows_of, sums_of
from .kernel import kernel
from .vectors import add, dot, floats_at, sum_rows

# Shorter vectors do not get length 1, as in the layer L2Normalise.
_SHORTEST = np.float32(1e-6)
# A number of floats that is more than a compiled loop reads at once.
_GAP = 128


@kernel
def learn_batch(copies, tables, context_starts, label_starts, candidates, settings, losses):
    """Train on examples, one step for each: scores, loss, gradient, and update of the rows of the
    example. Several workers may train the same weights at once, without locks.

    copies (Copies), tables (Tuple[FoundTokens, FoundTokens]): From ``RowsApart.prepare``, for
        the tokens of all contexts one after another, and for all labels. The weights are changed
        in place, and so are their squares: for each row, the sum of the means of its squared
        gradients (Adagrad). Without squares, the update is plain SGD.
    context_starts, label_starts (Ints1d): Index of each text's first token, and the end of the last
        text; int64.
    candidates (Ints2d): Right label, then wrong ones, int32, (n_examples, 1 + n_negatives).
    settings (Tuple): The following values.
        is_cosine (bool): Whether a score is a cosine; else it is a dot product.
        is_softmax (bool): Whether the loss is the softmax; else it is the hinge.
        power (float): The sum of a text's n rows is divided by n to this power.
        scale (float): Factor of the score.
        margin (float): Margin of the hinge.
        rate (float): Learning rate.
        eps (float): Added to the root of a row's squares.
        grad_clip (float): Largest norm of an example's gradient; 0 for no limit.
    losses (Floats1d): Loss of each example, float32; written.
    RETURNS (Tuple[int, float]): Number of examples trained on: all, or those before the first
        example whose loss is not finite, which changes nothing; and the sum of the squared norms of
        their gradients before clipping (a row counts once for each time that it is in an example).
    """
    width, has_squares = copies.width, len(copies.squares) > 0
    contexts, labels = rows_of(tables[0], width), rows_of(tables[1], width)
    of_contexts, of_labels = sums_of(tables[0], width), sums_of(tables[1], width)
    is_cosine, is_softmax, power, scale, margin, rate, eps, grad_clip = settings
    n_candidates = candidates.shape[1]
    # If two arrays are close to each other, a compiled loop takes another path, which rounds
    # differently. So these have the same distances in every run, and are far from other arrays.
    vectors = np.empty((n_candidates + 4, width + _GAP), np.float32)
    X, dX, dY = vectors[1][:width], vectors[2][:width], vectors[3][:width]
    numbers = np.empty((7, n_candidates + _GAP), np.float32)
    factors, cosines = numbers[1][:n_candidates], numbers[2][:n_candidates]
    scores, d_scores = numbers[3][:n_candidates], numbers[4][:n_candidates]
    are_unit, squares_of = numbers[5][:n_candidates], numbers[6][:n_candidates]
    scale, margin, power = np.float32(scale), np.float32(margin), np.float32(power)
    rate, eps, grad_clip = np.float32(rate), np.float32(eps), np.float32(grad_clip)
    total, n_trained = 0.0, 0
    for example in range(len(candidates)):
        begin, end = context_starts[example], context_starts[example + 1]
        sum_rows(contexts, begin, end, X)
        factor, is_unit = _factor(X, end - begin, power, is_cosine)
        for c in range(n_candidates):
            label = candidates[example, c]
            first, last = label_starts[label], label_starts[label + 1]
            Y = vectors[4 + c][:width]
            sum_rows(labels, first, last, Y)
            factors[c], are_unit[c] = _factor(Y, last - first, power, is_cosine)
            cosines[c] = factor * factors[c] * dot(X, Y)
            scores[c] = scale * cosines[c]
        loss = _softmax(scores, d_scores) if is_softmax else _hinge(scores, margin, d_scores)
        if not np.isfinite(loss):
            break
        losses[example] = loss
        n_trained += 1
        # With x = f X, the context's vector, and y_c = g_c Y_c, the labels':
        # dX = f (sum_c d_c y_c - x sum_c d_c x.y_c); the second term only if x has length 1.
        along = np.float32(0)
        dX[:] = 0
        for c in range(n_candidates):
            d_scores[c] *= scale
            if d_scores[c] != 0:
                along += d_scores[c] * cosines[c]
                add(dX, factor * factors[c] * d_scores[c], vectors[4 + c][:width])
        if is_unit:
            add(dX, -factor * factor * along, X)
        square = dot(dX, dX)
        norm = square * (end - begin)
        of_x = factor * factor * dot(X, X)
        for c in range(n_candidates):
            # |dY_c|^2, computed without reading Y_c again.
            along = cosines[c] * cosines[c] if are_unit[c] else np.float32(0)
            squares_of[c] = (factors[c] * d_scores[c]) ** 2 * max(of_x - along, np.float32(0))
            label = candidates[example, c]
            norm += squares_of[c] * (label_starts[label + 1] - label_starts[label])
        total += norm
        clip = np.float32(1)
        if grad_clip > 0 and norm > grad_clip * grad_clip:
            clip = grad_clip / np.float32(np.sqrt(norm))
        steps = (rate * clip, eps, clip * clip / np.float32(width), has_squares)
        for c in range(n_candidates):
            if d_scores[c] != 0:
                label = candidates[example, c]
                other = factors[c] * d_scores[c] * factor
                own = factors[c] * factors[c] * d_scores[c] * cosines[c]
                own = own if are_unit[c] else np.float32(0)
                Y = vectors[4 + c][:width]
                for j in range(width):
                    dY[j] = other * X[j] - own * Y[j]
                first, last = label_starts[label], label_starts[label + 1]
                _update(labels, of_labels, first, last, dY, squares_of[c], steps)
        _update(contexts, of_contexts, begin, end, dX, square, steps)
    meet(copies)
    return n_trained, total


@kernel
def _factor(X, n, power, is_cosine):
    """Return the factor for a sum of n rows, and whether the product has length 1."""
    pooled = np.float32(max(n, 1)) ** -power
    if not is_cosine:
        return pooled, False
    length = pooled * np.sqrt(dot(X, X))
    return pooled / max(length, _SHORTEST), length > _SHORTEST


@kernel
def _hinge(scores, margin, d_scores):
    """Return the mean over the wrong labels of the amount by which their scores violate the
    margin."""
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
    """Return the cross-entropy of the first label, the right one."""
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
def _update(rows, sums, begin, end, d, square, settings):
    """Update the rows of a text, which all have the gradient d, of squared norm ``square``."""
    rate, eps, to_mean, has_squares = settings
    width, step = len(d), rate
    for t in range(begin, end):
        if has_squares:
            total = floats_at(sums[t], 1)
            total[0] += square * to_mean
            step = rate / (np.sqrt(total[0]) + eps)
        row = floats_at(rows[t], width)
        for j in range(width):
            row[j] -= step * d[j]
