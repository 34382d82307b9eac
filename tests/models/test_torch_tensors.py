"""Tensors of PyTorch modules as views of a model's vectors."""

import copy
import pickle

import numpy as np
import pytest
from thinc.api import SGD, Adam, Linear, PyTorchWrapper, PyTorchWrapper_v2, RAdam, chain

from tests.ops.array_backends import BACKENDS
from thincdialog.errors import ModelError
from thincdialog.models.fitting import fit_weights
from thincdialog.models.gradient_sum import GradientSum
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.replica import replicate
from thincdialog.models.weights_file import read_weights, restore_dimensions, write_weights
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.sparse_sgd import SparseSGD

pytestmark = pytest.mark.torch
X = np.random.default_rng(0).normal(size=(6, 3)).astype("f")


def module(seed=0, drop=0.0):
    """Make a module with 8 trainable weights, 8 frozen ones, and a buffer of 2."""
    import torch

    torch.manual_seed(seed)
    layers = [torch.nn.Linear(3, 2), torch.nn.Dropout(drop), torch.nn.Linear(2, 2)]
    whole = torch.nn.Sequential(*layers, torch.nn.Linear(2, 1, bias=False))
    whole[2].requires_grad_(False)
    whole.register_buffer("kept", torch.rand(2))
    whole.register_buffer("mask", torch.full((2, 2), -torch.inf))
    whole.register_buffer("places", torch.arange(4))
    return whole


def net(seed=0, drop=0.0):
    model = chain(PyTorchWrapper(module(seed, drop)), Linear(4, 1))
    model.initialize(X)
    return model


def learn(model):
    Y, backprop = model.begin_update(X)
    backprop(Y - 1)
    return float(((Y - 1) ** 2).sum())


def test_torch_tensors_are_views_of_the_vectors_and_frozen_ones_come_last(ops):
    model = net()
    wrapped = model.layers[0].shims[0]._model
    before = {name: each.detach().clone() for name, each in wrapped.state_dict().items()}
    parameters = FlatParameters(model)
    names = [slot.param for slot in parameters.slots]
    assert names == ["0.weight", "0.bias", "3.weight", "W", "b", "kept", "2.weight", "2.bias"]
    assert parameters.n_parameters == 6 + 2 + 2 + 4 + 4 + 2 + 4 + 2
    for name, tensor in wrapped.state_dict(keep_vars=True).items():
        assert (tensor == before[name]).all()
        if name not in ("mask", "places"):
            vector = parameters.values if tensor.requires_grad else parameters.frozen
            assert np.shares_memory(tensor.detach().numpy(), vector)
    assert np.shares_memory(wrapped[0].weight.grad.numpy(), parameters.gradients)
    assert wrapped[2].weight.grad is None


# There is no stand-in for CUDA tensors.
@pytest.mark.parametrize("ops", BACKENDS[:2], indirect=True)
@pytest.mark.parametrize(
    "make",
    [
        lambda: Adam(0.05, L2=0.1, use_averages=True),
        lambda: Adam(0.05, L2=0.1, L2_is_weight_decay=False, grad_clip=0.1),
        lambda: RAdam(0.05, L2=0.1),
        lambda: SGD(0.05, L2=0.1),
        lambda: LazyAdam(0.05, L2=0.1, use_averages=True, average_every=1),
        lambda: SparseSGD(0.05),
    ],
)
def test_torch_tensors_train_and_frozen_ones_keep_every_bit(make, ops):
    model = net()
    parameters, optimizer = FlatParameters(model), make()
    frozen, first = parameters.frozen.tobytes(), parameters.values.copy()
    losses = []
    for _ in range(60):
        losses.append(learn(model))
        parameters.update(optimizer)
        assert not parameters.gradients.any()
    assert losses[-1] < 0.7 * losses[0]
    assert parameters.frozen.tobytes() == frozen
    learned = [slot for slot in parameters.slots if slot.offset < len(first)]
    assert all((slot.of(first) != slot.of(parameters.values)).any() for slot in learned)


def test_torch_tensors_make_the_steps_of_torch(ops):
    """Sums of two microbatches and the steps of plain SGD equal PyTorch's."""
    import torch

    plain = torch.nn.Sequential(module(), torch.nn.Linear(1, 4))
    model = net()
    with torch.no_grad():
        plain[1].weight[:] = torch.from_numpy(model.layers[1].get_param("W"))
        plain[1].bias[:] = torch.from_numpy(model.layers[1].get_param("b"))
    parameters = FlatParameters(model)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for _ in range(3):
        total = GradientSum(ops, parameters.segments)
        optimizer.zero_grad()
        for _ in range(2):
            learn(model)
            total.add(parameters.dense_gradients, parameters.take_rows())
            (0.5 * (plain(torch.from_numpy(X)) - 1) ** 2).sum().backward()
        parameters.give_rows(total.take(parameters.dense_gradients))
        parameters.update(SGD(0.1, grad_clip=0.0, use_averages=False))
        optimizer.step()
    for name, tensor in plain[0].named_parameters():
        found = model.layers[0].shims[0]._model.get_parameter(name)
        np.testing.assert_allclose(found.detach(), tensor.detach(), rtol=1e-5, atol=1e-7)


def test_torch_tensors_of_a_replica_share_weights_and_gather_gradients_of_their_own(ops):
    model = net()
    parameters = FlatParameters(model)
    twin = replicate(model)
    own = parameters.replica(twin)
    learn(model)
    assert not own.gradients.any()
    learn(twin)
    assert own.gradients.tobytes() == parameters.gradients.tobytes()
    own.update(SGD(0.1))
    assert model.predict(X).tobytes() == twin.predict(X).tobytes()
    assert own.frozen is parameters.frozen
    one, two = (each.layers[0].shims[0]._model for each in (model, twin))
    assert one is not two
    one.eval()
    assert two.training


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_torch_tensors_of_a_copy_are_its_own(copied, ops):
    model = net()
    parameters = FlatParameters(model)
    bare = copied(replicate(model, has_values=False))
    buffers = dict(bare.layers[0].shims[0]._model.named_buffers())
    assert bare.layers[0].shims[0]._model[0].weight.numel() == 0
    assert buffers["places"].tolist() == [0, 1, 2, 3] and buffers["mask"].isinf().all()
    own = copied(parameters).replica(bare)
    assert bare.predict(X).tobytes() == model.predict(X).tobytes()
    own.values[:] = 0
    own.frozen[:] = 0
    assert not bare.predict(X).any() and model.predict(X).all()


def test_torch_tensors_move_to_shared_memory(ops):
    model = net()
    parameters = FlatParameters(model)
    wanted, other = model.predict(X), parameters.values.copy()
    parameters.move(other)
    parameters.move_gradients(np.zeros_like(other))
    assert model.predict(X).tobytes() == wanted.tobytes()
    learn(model)
    parameters.update(SGD(0.1))
    assert model.predict(X).tobytes() != wanted.tobytes()


def test_torch_tensors_are_saved_and_loaded_whole(tmp_path, ops):
    model = net(1)
    parameters = FlatParameters(model)
    parameters.values += 1
    write_weights(tmp_path, model, parameters)
    assert {path.name for path in tmp_path.iterdir()} == {"weights.npy", "layout.json"}
    other = net(2)
    loaded = FlatParameters(other)
    assert other.predict(X).tobytes() != model.predict(X).tobytes()
    restore_dimensions(tmp_path, other)
    read_weights(tmp_path, loaded)
    assert other.predict(X).tobytes() == model.predict(X).tobytes()
    assert loaded.frozen.tobytes() == parameters.frozen.tobytes()
    fitted = FlatParameters(net(3))
    fit = fit_weights(tmp_path, fitted, (0, 0))
    assert not fit.fresh and fitted.frozen.tobytes() == parameters.frozen.tobytes()


def test_torch_tensors_draws_are_functions_of_seed_step_and_microbatch(ops):
    model = net(drop=0.5)
    parameters = FlatParameters(model)

    def drawn(*position):
        parameters.seed(*position)
        return model.begin_update(X)[0].tobytes()

    wanted = drawn(1, 2, 0)
    assert drawn(1, 2, 0) == wanted
    assert wanted not in (drawn(1, 2, 1), drawn(1, 3, 0), drawn(2, 2, 0))
    assert model.predict(X).tobytes() == model.predict(X).tobytes()


def test_torch_tensors_tied_ones_are_laid_out_once(ops):
    import torch

    tied = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    model = PyTorchWrapper(tied)
    parameters = FlatParameters(model)
    assert parameters.n_parameters == 9 + 3 + 3
    twin = replicate(model)
    own = parameters.replica(twin)
    learn(twin)
    learn(model)
    assert own.gradients.tobytes() == parameters.gradients.tobytes()


def test_torch_tensors_that_cannot_be_trained_are_refused():
    import torch

    norm = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    with pytest.raises(ModelError, match="module '1' of layer 'pytorch' is a BatchNorm1d"):
        FlatParameters(PyTorchWrapper(norm))
    with pytest.raises(ModelError, match="'weight' of layer 'pytorch' is torch.float64.*float()"):
        FlatParameters(PyTorchWrapper(torch.nn.Linear(3, 3).double()))
    mixed = PyTorchWrapper_v2(torch.nn.Linear(3, 3))
    mixed.shims[0]._mixed_precision = True
    with pytest.raises(ModelError, match="wraps a model of another library.*mixed_precision"):
        FlatParameters(mixed)
