"""Checks that every layer must pass, whatever it computes."""

import numpy as np
from thinc.api import Ragged, data_validation, fix_random_seed

# Step of the finite differences (small, because of the kinks of relu and maxout), and tolerance for
# single precision.
STEP = 1e-3
TOLERANCE = 1e-2


def check_layer(build, X, ops, *, is_differentiable=True, n_outputs=None):
    """Check a layer on a batch of examples.

    build (Callable): Makes the layer, all sizes known or found from X, no dropout.
    X (Ragged or array): Several examples; on the ops' device.
    is_differentiable (bool): Whether the input has a gradient (False for token ids).
    n_outputs (Optional[Callable]): Expected leading size of the output, from X; the
        number of examples if None.
    """
    layer = make(build, X)
    check_shapes(layer, X, n_outputs)
    assert (numbers(layer.begin_update(X)[0]) == numbers(layer.predict(X))).all()
    check_gradients(layer, X, ops, is_differentiable)
    check_gradients_add_up(layer, X, ops)
    other = build().from_bytes(layer.to_bytes())
    assert (numbers(other.predict(X)) == numbers(layer.predict(X))).all()
    check_examples_are_independent(layer, X, ops)
    check_empty(layer, X, ops)
    check_input_is_kept(layer, X)
    with data_validation(True):
        make(build, X)


def make(build, X):
    fix_random_seed(1)
    layer = build()
    layer.initialize(X=X)
    return layer


def numbers(value):
    """Return the array of a Ragged, or the array itself."""
    return value.dataXd if isinstance(value, Ragged) else value


def like(value, array):
    return Ragged(array, value.lengths) if isinstance(value, Ragged) else array


def draw(ops, shape, seed):
    return ops.asarray_f(np.random.default_rng(seed).normal(size=shape).astype("f"))


def check_shapes(layer, X, n_outputs):
    Y = layer.predict(X)
    wanted = len(X) if isinstance(X, Ragged) else X.shape[0]
    assert len(Y) == (wanted if n_outputs is None else n_outputs(X))
    assert not layer.has_dim("nO") or numbers(Y).shape[1] == layer.get_dim("nO")
    assert all(node.has_dim(name) for node in layer.walk() for name in ("nO", "nI", "nV")
               if node.has_dim(name) is not False)  # fmt: skip
    dX = layer.begin_update(X)[1](like(Y, numbers(Y) * 0))
    assert type(dX) is type(X)
    assert numbers(dX).shape == numbers(X).shape


def gradients(layer):
    return [node.get_grad(name) for node in layer.walk() for name in node.grad_names]


def clear(layer):
    for gradient in gradients(layer):
        gradient[...] = 0


def check_gradients(layer, X, ops, is_differentiable):
    """Check the derivative along a random direction, for the input and for each parameter."""
    clear(layer)
    Y, backprop = layer.begin_update(X)
    dY = draw(ops, numbers(Y).shape, 2)
    dX = backprop(like(Y, dY))

    X = like(X, numbers(X).copy())
    checks = [("X", numbers(X), numbers(dX))] if is_differentiable else []
    for node in layer.walk():
        for name in node.param_names:
            checks.append((f"{node.name}.{name}", node.get_param(name), node.get_grad(name)))
    for name, values, gradient in checks:
        direction, before, losses = draw(ops, values.shape, 3), values.copy(), []
        for step in (STEP, -STEP):
            values[...] = before + step * direction
            losses.append(float((numbers(layer.predict(X)).astype("float64") * dY).sum()))
        values[...] = before
        measured, computed = (
            (losses[0] - losses[1]) / (2 * STEP),
            float((gradient * direction).sum()),
        )
        bound = TOLERANCE * max(1.0, abs(measured))
        assert abs(measured - computed) <= bound, (name, measured, computed)


def check_gradients_add_up(layer, X, ops):
    clear(layer)
    found = []
    for _ in range(2):
        Y, backprop = layer.begin_update(X)
        backprop(like(Y, draw(ops, numbers(Y).shape, 5)))
        found.append([gradient.copy() for gradient in gradients(layer)])
    for once, twice in zip(*found):
        ops.xp.testing.assert_allclose(2 * once, twice, rtol=1e-5, atol=1e-6)


def check_examples_are_independent(layer, X, ops):
    """Check that each example has the same output alone as in the batch: padding does not leak
    in."""
    Y = layer.predict(X)
    n = len(X) if isinstance(X, Ragged) else X.shape[0]
    alone = [numbers(layer.predict(part(X, i, i + 1))) for i in range(n)]
    together = np.concatenate([ops.to_numpy(each) for each in alone])
    np.testing.assert_allclose(ops.to_numpy(numbers(Y)), together, rtol=1e-4, atol=1e-5)


def part(X, first, last):
    if not isinstance(X, Ragged):
        return X[first:last]
    ends = X.lengths.cumsum()
    start = int(ends[first] - X.lengths[first]) if first < len(X) else int(X.lengths.sum())
    stop = int(ends[last - 1]) if last > first else start
    return Ragged(X.dataXd[start:stop], X.lengths[first:last])


def check_empty(layer, X, ops):
    """Check a batch without examples: the output is empty, and no parameter gets a gradient."""
    nothing = part(X, 0, 0)
    Y, backprop = layer.begin_update(nothing)
    assert len(Y) == 0
    clear(layer)
    assert len(backprop(Y)) == 0
    assert not any(gradient.any() for gradient in gradients(layer))


def check_input_is_kept(layer, X):
    before = numbers(X).copy()
    Y, backprop = layer.begin_update(X)
    dY = numbers(Y) * 0 + 1
    kept = dY.copy()
    backprop(like(Y, dY))
    assert (numbers(X) == before).all()
    assert (dY == kept).all()
