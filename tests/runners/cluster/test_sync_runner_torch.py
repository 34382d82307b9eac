"""Ray workers train a model with a PyTorch module."""

import pytest

from tests.runners.cluster.test_ray import RAY, run
from tests.training.torch_encoder import CODE, TORCH

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("ray")]
CONFIG = TORCH.replace("n_samples = 1", "n_samples = 0\neval_every_steps = 4") + RAY


@pytest.mark.parametrize("plane", ["shm", "store"])
def test_sync_runner_torch_two_workers_end_with_the_weights_of_one_process(
    plane, cluster, tmp_path
):
    options = {"config": CONFIG, "code": CODE}
    alone = run(tmp_path / "alone", {"num_workers": 0}, **options)
    found = run(tmp_path / "two", {"plane": plane}, **options)
    assert found[0] == alone[0]
    assert found[1] == alone[1] and len(alone[1]) > 3
