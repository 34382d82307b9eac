import numpy as np
import pytest
from thinc.api import SGD, Adam, Optimizer, RAdam, warmup_linear

from tests.ops.array_backends import same_bits
from thincdialog.ops.choice import get_dialog_ops
from thincdialog.optimizers.blocks import BLOCK_FLOATS, step_in_blocks
from thincdialog.optimizers.state import ARRAYS, optimizer_state

KEY = (0, "parameters")
SIZES = [10, BLOCK_FLOATS, 2 * BLOCK_FLOATS + 777]


def trained(step, optimizer, size, n_steps=12, ops="numpy"):
    rng = np.random.default_rng(0)
    weights, gradient = rng.normal(size=size).astype("f"), np.empty(size, "f")
    for _ in range(n_steps):
        gradient[:] = rng.normal(size=size)
        stepped = step(optimizer, KEY, weights, gradient, get_dialog_ops(-1, ops))
        assert np.shares_memory(stepped, weights) and not gradient.any()
        optimizer.step_schedules()
    return weights


def whole(optimizer, key, weights, gradient, ops):
    return optimizer(key, weights, gradient)[0]


@pytest.mark.parametrize("ops", ["numpy", "fast"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [Adam, RAdam, SGD])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"grad_clip": 0.0, "use_averages": False},
        {"L2": 0.1, "grad_clip": 3.0},
        {"L2": 0.1, "L2_is_weight_decay": False, "grad_clip": 0.0},
        {"L2": 0.1, "L2_is_weight_decay": False},
    ],
)
def test_a_step_in_blocks_has_the_bits_of_thincs(options, make, size, ops):
    found = []
    for step in (whole, step_in_blocks):
        optimizer = make(warmup_linear(0.1, 5, 20), **options)
        weights = trained(step, optimizer, size, ops=ops)
        found.append((weights, *optimizer_state(optimizer)))
    (weights, state, arrays), (in_blocks, state_of_blocks, arrays_of_blocks) = found
    assert state == state_of_blocks and set(arrays) == set(arrays_of_blocks)
    for array, of_blocks in [
        (weights, in_blocks), *((arrays[name], arrays_of_blocks[name]) for name in arrays)
    ]:  # fmt: skip
        if ops == "fast" and make is Adam:
            # The compiled step takes 1 - beta2 in double: the roots differ by 2e-5, each of the
            # 12 steps is 0.1 long at most.
            np.testing.assert_allclose(array, of_blocks, rtol=1e-4, atol=3e-5)
        else:
            same_bits(array, of_blocks)


@pytest.mark.parametrize("size", [0, *SIZES])
@pytest.mark.parametrize("make", [Adam, SGD])
@pytest.mark.parametrize(
    "options",
    [
        {"grad_clip": 0.0},
        {"grad_clip": 1.0},
        {"grad_clip": 0.0, "L2": 0.1, "L2_is_weight_decay": False},
        {"grad_clip": 1.0, "L2": 0.1, "L2_is_weight_decay": False},
    ],
)
def test_a_gradient_is_scaled_before_all_else(options, make, size):
    scale, ops, rng = 1 / 3, get_dialog_ops(), np.random.default_rng(0)
    weights = rng.normal(size=size).astype("f")
    theirs, ours, ended = weights.copy(), weights.copy(), []
    thincs, other = make(0.1, **options), make(0.1, **options)
    for step in range(3):
        gradient = rng.normal(size=size).astype("f") * 10**step / max(1.0, size**0.5)
        whole(thincs, KEY, theirs, gradient * np.float32(scale), ops)
        step_in_blocks(other, KEY, ours, gradient, ops, scale)
        assert not gradient.any()
    same_bits(ours, theirs)
    for optimizer in (thincs, other):
        state, arrays = optimizer_state(optimizer)
        ended.append((state, set(arrays)))
    assert ended[0] == ended[1]


def test_adam_steps_by_the_ops_of_the_model():
    class Counted(type(get_dialog_ops())):
        n_floats = 0

        def adam(self, weights, *rest):
            self.n_floats += len(weights)
            return super().adam(weights, *rest)

    ops, size = Counted(), SIZES[-1]
    weights, gradient = np.zeros((2, size), "f")
    step_in_blocks(Adam(0.1), KEY, weights, gradient, ops)
    step_in_blocks(RAdam(0.1), KEY, weights, gradient, ops)
    assert ops.n_floats == size


def test_the_state_of_all_blocks_is_one_array_that_stays_where_it_is():
    optimizer, size = Adam(0.1), SIZES[-1]
    trained(step_in_blocks, optimizer, size, 1)
    first = {name: getattr(optimizer, name)[KEY] for name in ARRAYS}
    trained(step_in_blocks, optimizer, size, 2)
    for name, array in first.items():
        kept = getattr(optimizer, name)
        assert list(kept) == [KEY] and kept[KEY] is array and array.shape == (size,)
    assert optimizer.nr_update == {KEY: 3} and optimizer.grad_clip == 1.0


class Sized(Optimizer):
    """Of a user: its step knows how long all is, and leaves the gradient as it is."""

    def __call__(self, key, weights, gradient, *, lr_scale=1.0):
        self.seen = [*getattr(self, "seen", []), len(weights)]
        weights, _ = super().__call__(key, weights, gradient.copy(), lr_scale=lr_scale)
        return weights, gradient


def test_an_optimizer_of_a_users_gets_all_at_once_and_the_gradient_is_cleared_behind_it():
    optimizer, size = Sized(0.1), SIZES[-1]
    trained(step_in_blocks, optimizer, size, 3)
    assert optimizer.seen == [size] * 3
