import numpy as np
import pytest
from thinc.api import (
    SGD,
    Adam,
    Linear,
    Model,
    Optimizer,
    Relu,
    Shim,
    Softmax,
    chain,
    fix_random_seed,
)

from tests.ops.array_backends import EACH_OPS, backend, ragged
from thincdialog.errors import ModelError, TrainingError
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.models.parameters import KEY, FlatParameters
from thincdialog.optimizers.lazy_adam import LazyAdam

N_IDS = 40


def net():
    model = chain(Relu(5, 3), Linear(2, 5))
    model.initialize()
    return model


def text_net(ops):
    model = chain(BagEmbed(6, N_IDS), Relu(5, 6), Linear(2, 5))
    model.initialize(X=ragged([[1, 2, 3]], ops))
    return model


def learn(model, X):
    Y, backprop = model.begin_update(X)
    backprop(Y * 0 + 1)


def test_parameters_keep_their_values_and_become_aligned_views(ops):
    model = net()
    names = [(node, name) for node in model.walk() for name in node.param_names]
    before = [node.get_param(name).copy() for node, name in names]
    parameters = FlatParameters(model)
    assert parameters.n_parameters == 3 * 5 + 5 + 5 * 2 + 2
    assert [slot.shape for slot in parameters.slots] == [array.shape for array in before]
    nodes = list(model.walk())
    for slot, (node, name), value in zip(parameters.slots, names, before):
        assert nodes[slot.node] is node and slot.param == name
        assert (node.get_param(name) == value).all()
        assert node.get_param(name).ctypes.data % 64 == 0
        assert np.shares_memory(node.get_param(name), parameters.values)
        assert np.shares_memory(node.get_grad(name), parameters.gradients)
    assert parameters.values.flags.c_contiguous and parameters.values.dtype == np.float32


@EACH_OPS
@pytest.mark.parametrize(
    "make, options", [(Adam, {}), (Adam, {"L2": 0.1}), (SGD, {}), (LazyAdam, {"average_every": 1})]
)
def test_parameters_views_stay_views_through_training(make, options, ops):
    model = text_net(ops)
    parameters = FlatParameters(model)
    optimizer = make(0.1, use_averages=True, **options)
    for step in range(3):
        before = parameters.values.copy()
        learn(model, ragged([[step, step + 1]], ops))
        assert parameters.gradients.any()
        parameters.update(optimizer)
        assert (parameters.values != before).any() and not parameters.gradients.any()
    nodes = list(model.walk())
    for slot in parameters.slots:
        segment = parameters.values[slot.offset : slot.offset + slot.size]
        param = nodes[slot.node].get_param(slot.param)
        assert (param == segment.reshape(slot.shape)).all()
        parameters.values[slot.offset] += 1
        assert param.ravel()[0] == segment[0]


def test_parameters_update_equals_thinc_with_the_same_optimizer(ops):
    X = np.random.default_rng(0).normal(size=(4, 3)).astype("f")
    fix_random_seed(3)
    plain = net()
    fix_random_seed(3)
    flat = net()
    parameters = FlatParameters(flat)
    # No clipping: Thinc would clip each parameter separately.
    one, two = Adam(0.01, grad_clip=0.0), Adam(0.01, grad_clip=0.0)
    for _ in range(4):
        for model in (plain, flat):
            learn(model, X)
        plain.finish_update(one)
        parameters.update(two)
    for a, b in zip(plain.walk(), flat.walk()):
        for name in a.param_names:
            np.testing.assert_allclose(a.get_param(name), b.get_param(name), rtol=1e-6)


@EACH_OPS
@pytest.mark.parametrize("make", [SGD, LazyAdam, Adam])
def test_parameters_update_returns_the_norm_before_clipping(make, ops):
    model = text_net(ops)
    parameters = FlatParameters(model)
    optimizer = make(0.1, grad_clip=1.0)
    learn(model, ragged([range(N_IDS)], ops))  # This shows that every row has a gradient.
    wanted = 0.0
    for slot in parameters.slots:
        parameters.gradients[slot.offset : slot.offset + slot.size] = 3.0
        wanted += 9.0 * slot.size
    norm = float(parameters.update(optimizer, scale=0.5))
    assert norm == pytest.approx(0.5 * np.sqrt(wanted), rel=1e-6)


def test_parameters_update_clips_the_whole_gradient_and_steps_the_schedules_once(ops):
    parameters = FlatParameters(net())
    parameters.gradients[:] = 1.0
    before = parameters.values.copy()
    optimizer = SGD(iter([1.0, 2.0, 3.0]), grad_clip=0.5, use_averages=False)
    parameters.update(optimizer)
    moved = np.linalg.norm(parameters.values - before)
    assert moved == pytest.approx(0.5, rel=1e-4)
    assert optimizer.learn_rate == 2.0 and optimizer.nr_update[KEY] == 1


@pytest.mark.parametrize("make", [Adam, LazyAdam])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_parameters_gradient_that_is_not_finite_changes_nothing(make, bad, ops):
    model = net()
    parameters = FlatParameters(model)
    optimizer = make(0.1)
    before = parameters.values.copy()
    parameters.gradients[7] = bad
    with pytest.raises(TrainingError, match="not finite"):
        parameters.update(optimizer)
    assert (parameters.values == before).all()
    assert not optimizer.mom1


@pytest.mark.gpu
@pytest.mark.parametrize("make", [SGD, LazyAdam])
def test_parameters_gradients_of_a_device_that_are_not_used_are_counted(make):
    with backend(0):
        parameters = FlatParameters(net())
        optimizer, norms, moved = make(0.1), [], []
        for value in (np.nan, 1.0, np.inf, np.nan):
            before = parameters.values.copy()
            parameters.gradients[3:9] = value
            norms.append(parameters.update(optimizer))
            moved.append(bool((parameters.values != before).any()))
    assert moved == [False, True, False, False] and parameters.n_skipped == 3
    assert not parameters.gradients.any()
    assert np.isfinite(float(norms[1]))
    with pytest.raises(TrainingError, match="not finite"):
        float(norms[0])


def test_parameters_optimizer_that_is_not_in_place_works_too(ops):
    class Copying(Optimizer):
        def __call__(self, key, weights, gradient, *, lr_scale=1.0):
            return weights - gradient, gradient * 0

    parameters = FlatParameters(net())
    before = parameters.values.copy()
    parameters.gradients[:] = 0.25
    parameters.update(Copying(0.1))
    assert (parameters.values == before - 0.25).all()


def test_parameters_tied_arrays_are_laid_out_once(ops):
    first, second = Linear(4, 4), Softmax(4, 4)
    model = chain(first, second)
    model.initialize()
    second.set_param("W", first.get_param("W"))
    parameters = FlatParameters(model)
    assert parameters.n_parameters == 16 + 4 + 4
    assert np.shares_memory(first.get_param("W"), second.get_param("W"))
    first.inc_grad("W", np.ones((4, 4), dtype="f"))
    second.inc_grad("W", np.ones((4, 4), dtype="f"))
    assert (first.get_grad("W") == 2).all() and (parameters.gradients == 2).sum() == 16


def test_parameters_load_changes_all_views(ops):
    model = net()
    parameters = FlatParameters(model)
    other = np.arange(parameters.values.size, dtype="f")
    parameters.load(other)
    assert (model.layers[0].get_param("W").ravel() == other[:15]).all()
    with pytest.raises(ModelError, match="model of another size"):
        parameters.load(other[:-1])


def test_parameters_gaps_between_parameters_stay_zero(ops):
    model = text_net(ops)
    parameters = FlatParameters(model)
    inside = np.zeros(parameters.values.shape, dtype=bool)
    for slot in parameters.slots:
        inside[slot.offset : slot.offset + slot.size] = True
    assert not inside.all()
    for optimizer in (Adam(0.1, L2=0.1), LazyAdam(0.1, L2=0.1)):
        for _ in range(2):
            learn(model, ragged([[1, 2]], ops))
            parameters.update(optimizer)
    assert not parameters.values[~inside].any()


def test_parameters_without_values_or_of_another_library_are_refused():
    with pytest.raises(ModelError, match="'W' of layer 'linear' has no value"):
        FlatParameters(Linear(2, 2))
    model = Model("wrapped", lambda model, X, is_train: (X, lambda dY: dY), shims=[Shim(None)])
    with pytest.raises(ModelError, match="'wrapped' wraps a model of another library"):
        FlatParameters(model)
