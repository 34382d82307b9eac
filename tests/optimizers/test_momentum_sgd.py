"""SGD with momentum, compared with PyTorch's, and its limits."""

import numpy as np
import pytest

from thincdialog.optimizers.row_sparse import Segment
from thincdialog.registry import registry

KEY = (0, "parameters")


def make(**options):
    registry.ensure_populated()
    return registry.optimizers.get("thincdialog.MomentumSGD.v1")(0.1, grad_clip=0.0, **options)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_sgd_makes_the_steps_of_pytorch(nesterov):
    torch = pytest.importorskip("torch")
    there = torch.nn.Parameter(torch.ones(8))
    optimizer = torch.optim.SGD([there], lr=0.1, momentum=0.8, nesterov=nesterov)
    here, ours = np.ones(8, dtype="f"), make(momentum=0.8, nesterov=nesterov, L2=0.0)
    for step in range(20):
        gradient = np.random.default_rng(step).normal(size=8).astype("f")
        there.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        ours.update_parts(KEY, here, gradient, [Segment(0, 8)])
    np.testing.assert_allclose(here, there.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_momentum_sgd_goes_far_with_the_same_gradient_again_and_again():
    weights, optimizer = np.zeros(1, dtype="f"), make(momentum=0.75, L2=0.0)
    for _ in range(60):
        before = weights.copy()
        optimizer.update_parts(KEY, weights, np.ones(1, dtype="f"), [Segment(0, 1)])
    assert before - weights == pytest.approx(0.1 / (1 - 0.75), rel=1e-4)


@pytest.mark.parametrize("momentum", [-0.1, 1.0])
def test_momentum_sgd_out_of_range_is_refused(momentum):
    with pytest.raises(ValueError, match="must be 0.0 or more and below 1.0"):
        make(momentum=momentum)
