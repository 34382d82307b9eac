"""Workers on GPUs exchange data on the host, and end with identical weights for any plane and any
number of workers."""

import numpy
import pytest

from tests.processes import slow
from tests.runners.cluster.workers_in_threads import ThreadedWorkers, check_worker_left_alone
from tests.runners.resuming import FIXED, LAZY, NOTES, SGD, WORDS, config
from tests.test_configs import code_of, write_digits
from thincdialog.config import load_code
from thincdialog.errors import TrainingError

pytestmark = pytest.mark.gpu
N_MICROBATCHES = 3
ON_GPU = ("[system]\n", "[system]\ngpu_id = 0\n")
EXACT = ("dropout = 0.1", "dropout = 0.0")


@pytest.fixture(autouse=True)
def notes():
    pytest.importorskip("cupy")
    NOTES.clear()
    yield
    NOTES.clear()


@pytest.mark.parametrize("changes", [(FIXED,), (WORDS, LAZY), slow((WORDS, SGD))])
def test_workers_on_gpus_end_with_identical_weights(changes):
    text = config(*changes, ON_GPU)
    alone = ThreadedWorkers(text, 1, N_MICROBATCHES).train(2)
    for n_workers, plane in ((2, "shm"), (4, "shm"), (2, "store"), (3, "store")):
        found = ThreadedWorkers(text, n_workers, N_MICROBATCHES, plane).train(2)
        assert numpy.array_equal(found, alone), (n_workers, plane)


def test_workers_on_gpus_that_own_several_slots_end_with_identical_weights():
    text = config(WORDS, LAZY, ON_GPU)
    alone, found = (ThreadedWorkers(text, n, 5).train(1) for n in (1, 2))
    assert numpy.array_equal(found, alone)


def test_workers_on_gpus_end_with_identical_weights_of_a_model_without_tables(root, tmp_path):
    path = root / "configs" / "mnist_ray.cfg"
    load_code(code_of(path))
    write_digits(tmp_path)
    text = path.read_text().replace("mnist = null", f'mnist = "{tmp_path}"')
    text = text.replace("size = 128", "size = 8")
    text = text.replace(*ON_GPU)
    alone, found = (ThreadedWorkers(text, n, 2).train(1) for n in (1, 2))
    assert numpy.array_equal(found, alone)


@pytest.mark.parametrize("changes", [(FIXED,), (WORDS, LAZY)])
def test_a_worker_on_a_gpu_learns_what_one_on_the_cpu_does(changes):
    found = [
        ThreadedWorkers(config(*changes, EXACT, *more), 1, N_MICROBATCHES).train(2)
        for more in ((), (ON_GPU,))
    ]
    numpy.testing.assert_allclose(found[1], found[0], atol=1e-4)


@pytest.mark.parametrize("plane", ["shm", "store"])
def test_workers_on_gpus_resume_with_another_number_of_workers(plane):
    text = config(WORDS, LAZY, ON_GPU)
    whole = ThreadedWorkers(text, 1, N_MICROBATCHES).train(2)
    workers = ThreadedWorkers(text, 2, N_MICROBATCHES, plane)
    workers.each("start_epoch", 0)
    workers.run(4)
    others = workers.resumed_by(ThreadedWorkers(text, 3, N_MICROBATCHES, plane))
    others.finish()
    others.each("start_epoch", 1)
    others.finish()
    assert numpy.array_equal(others.weights(), whole)


@pytest.mark.parametrize("n_microbatches", [2, 4])
def test_a_worker_on_a_gpu_left_alone_within_a_step_starts_it_again(n_microbatches):
    check_worker_left_alone(config(FIXED, ON_GPU), n_microbatches)


def test_a_gradient_of_a_gpu_that_is_not_finite_ends_the_run_and_changes_nothing():
    workers = ThreadedWorkers(config(FIXED, ON_GPU), 2, 2)
    workers.each("start_epoch", 0)
    before = workers.weights()
    workers.workers[1].vectors.parameters.dense_gradients.fill(numpy.inf)
    with pytest.raises(TrainingError, match="gradient of step 1 is not finite.*colours/"):
        workers.run(1)
    assert numpy.array_equal(workers.weights(), before)
