"""A PyTorch module that reads tokens."""

import sys

import numpy as np
import pytest
from thinc.api import chain, fix_random_seed, with_padded
from thinc.api import noop as no_op

from tests.ops.array_backends import ragged
from tests.training.torch_encoder import make_module, torch_tokens
from thincdialog.agents.model_agent import has_rectangles
from thincdialog.errors import MissingPackageError
from thincdialog.layers.with_torch_tokens import with_torch_tokens
from thincdialog.models.parameters import FlatParameters

pytestmark = pytest.mark.torch
N_IDS = 20
TEXTS = [[(1, 0), (2, 0), (3, 1)], [], [(4, 2)], [(5, 0), (1, 1)]]


@pytest.fixture
def layer(ops):
    """Return a layer without dropout, with its parameters."""
    layer = make(torch_tokens(8, 0.0))
    return layer, FlatParameters(layer)


def make(layer, seed=1):
    fix_random_seed(seed)
    layer.set_dim("nV", N_IDS)
    layer.initialize()
    return layer


def test_with_torch_tokens_gives_each_token_its_vector_and_each_parameter_torchs_gradient(layer):
    import torch

    layer, parameters = layer
    fix_random_seed(1)
    module = make_module(8, 0.0, N_IDS)
    tokens = torch.tensor([[[1, 0], [2, 0], [3, 1]], [[4, 2], [0, 0], [0, 0]],
                           [[5, 0], [1, 1], [0, 0]]])  # fmt: skip
    mask = torch.tensor([[True] * 3, [True, False, False], [True, True, False]])
    wanted = module(tokens, mask)[mask]
    d_wanted = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 8)).astype("f"))
    wanted.backward(d_wanted)
    X = ragged(TEXTS)
    Y, backprop = layer.begin_update(X)
    dX = backprop(type(Y)(d_wanted.numpy(), Y.lengths))
    np.testing.assert_array_equal(Y.dataXd, wanted.detach().numpy())
    assert Y.lengths.tolist() == [3, 0, 1, 2]
    assert dX.dataXd.shape == (6, 2) and not dX.dataXd.any()
    found = {slot.param: slot.of(parameters.gradients) for slot in learned(parameters)}
    assert found.keys() == {name for name, each in module.named_parameters() if each.requires_grad}
    for name, tensor in module.named_parameters():
        if tensor.requires_grad:
            np.testing.assert_array_equal(found[name], tensor.grad.numpy())
            assert found[name].any()


def learned(parameters):
    return [slot for slot in parameters.slots if slot.offset < len(parameters.values)]


def test_with_torch_tokens_gradients_are_those_of_finite_differences(layer):
    layer, parameters = layer
    X, step = ragged(TEXTS), 1e-3
    rng = np.random.default_rng(0)
    dY = rng.normal(size=(6, 8)).astype("f")
    Y, backprop = layer.begin_update(X)
    backprop(type(Y)(dY, Y.lengths))
    direction = rng.normal(size=len(parameters.values)).astype("f")
    before, sums = parameters.values.copy(), []
    for sign in (1, -1):
        parameters.values[:] = before + sign * step * direction
        sums.append(float((layer.predict(X).dataXd * dY).sum(dtype="d")))
    slope = float(parameters.gradients @ direction)
    assert (sums[0] - sums[1]) / (2 * step) == pytest.approx(slope, rel=1e-2)


def test_with_torch_tokens_gradients_of_several_passes_add_up(layer):
    layer, parameters = layer
    wholes = []
    for passes in (1, 2):
        for _ in range(passes):
            Y, backprop = layer.begin_update(ragged(TEXTS))
            backprop(Y)
        wholes.append(parameters.gradients.copy())
        parameters.clear_gradients()
        assert not parameters.gradients.any()
    np.testing.assert_allclose(wholes[1], 2 * wholes[0], rtol=1e-6)


def test_with_torch_tokens_an_example_does_not_depend_on_the_others(layer):
    layer, _ = layer
    whole = layer.predict(ragged(TEXTS)).dataXd
    for example, now in zip(TEXTS, (slice(0, 3), slice(3, 3), slice(3, 4), slice(4, 6))):
        alone = layer.predict(ragged([example])).dataXd
        np.testing.assert_allclose(alone, whole[now], atol=1e-6)


@pytest.mark.parametrize("texts", [[], [[], []]])
def test_with_torch_tokens_nothing_to_read_gives_nothing(texts, layer):
    layer, parameters = layer
    for is_train in (False, True):
        Y, backprop = layer(ragged(texts), is_train)
        assert Y.dataXd.shape == (0, 8) and len(Y.lengths) == len(texts)
        backprop(Y)
    assert not parameters.gradients.any()


def test_with_torch_tokens_predictions_have_no_dropout_whatever_came_before(ops):
    layer = make(torch_tokens(8, 0.5))
    FlatParameters(layer)
    X = ragged(TEXTS)
    before = layer.predict(X).dataXd.copy()
    assert (layer.begin_update(X)[0].dataXd != before).any()
    np.testing.assert_array_equal(layer.predict(X).dataXd, before)
    assert not layer.shims[0]._model.training  # So clones may answer in several threads.


def test_with_torch_tokens_a_frozen_module_needs_no_gradient(ops):
    def make_frozen(n_ids):
        return make_module(8, 0.0, n_ids).requires_grad_(False)

    layer = make(with_torch_tokens(make_frozen, 8))
    parameters = FlatParameters(layer)
    Y, backprop = layer.begin_update(ragged(TEXTS))
    backprop(Y)
    assert not len(parameters.values) and parameters.n_parameters == 800


def test_with_torch_tokens_a_module_that_returns_another_shape_is_refused(ops):
    layer = make(with_torch_tokens(lambda n_ids: make_module(8, 0.0, n_ids), 9))
    with pytest.raises(ValueError, match=r"returned \(3, 3, 8\), expected \(3, 3, 9\)"):
        layer.predict(ragged(TEXTS))


def test_with_torch_tokens_counts_as_padded(ops):
    assert has_rectangles(chain(torch_tokens(), no_op()))
    assert has_rectangles(with_padded(no_op())) and not has_rectangles(no_op())


def test_with_torch_tokens_without_pytorch_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingPackageError, match=r"'torch'.*pip install 'thincdialog\[torch\]'"):
        with_torch_tokens(make_module, 8)
