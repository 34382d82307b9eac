"""Workers on GPUs end with identical weights for any plane and any number of workers. The devices
are those of a stand-in."""

import threading

import numpy
import pytest

from tests.processes import slow
from tests.runners.cluster.peers_in_threads import Peers, goes_on_alone, made
from tests.runners.resuming import FIXED, LAZY, NOTES, SGD, WORDS, config
from tests.test_configs import code_of, write_digits
from thincdialog.config import load_code
from thincdialog.errors import DialogError, TrainingError
from thincdialog.runners.cluster import communicator
from thincdialog.runners.cluster.actor import WorkerActor
from thincdialog.runners.cluster.communicator import Communicator, unique_id, why_no_nccl
from thincdialog.runners.cluster.lone_plane import Aborted
from thincdialog.runners.cluster.slots import Slots

pytestmark = pytest.mark.gpu
N_MICROBATCHES = 3
ON_GPU = ("[system]\n", "[system]\ngpu_id = 0\n")
EXACT = ("dropout = 0.1", "dropout = 0.0")


@pytest.fixture(autouse=True)
def devices(monkeypatch):
    """Yield CuPy with four devices, one for each thread."""
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("one process has one GPU: test_nccl_plane_on_ray.py has several")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    NOTES.clear()
    yield cupy
    NOTES.clear()
    cupy.cuda.Device(0).use()


@pytest.mark.parametrize("changes", [(FIXED,), (WORDS, LAZY), slow((WORDS, SGD))])
def test_workers_on_gpus_end_with_identical_weights(changes):
    text = config(*changes, ON_GPU)
    alone = Peers(text, 1, N_MICROBATCHES).train(2)
    for n_workers, plane in ((1, "nccl"), (2, "nccl"), (4, "nccl"), (2, "shm"), (3, "store")):
        found = Peers(text, n_workers, N_MICROBATCHES, plane).train(2)
        assert numpy.array_equal(found, alone), (n_workers, plane)


def test_workers_on_gpus_that_own_several_slots_end_with_identical_weights():
    text = config(WORDS, LAZY, ON_GPU)
    alone, found = (Peers(text, n, 5, "nccl").train(1) for n in (1, 2))
    assert numpy.array_equal(found, alone)


def test_workers_on_gpus_end_with_identical_weights_of_a_model_without_tables(root, tmp_path):
    path = root / "configs" / "mnist_ray.cfg"
    load_code(code_of(path))
    write_digits(tmp_path)
    text = path.read_text().replace("mnist = null", f'mnist = "{tmp_path}"')
    text = text.replace("size = 128", "size = 8")
    text = text.replace(*ON_GPU)
    alone, found = (Peers(text, n, 2, "nccl" if n > 1 else "shm").train(1) for n in (1, 2))
    assert numpy.array_equal(found, alone)


@pytest.mark.parametrize("changes", [(FIXED,), (WORDS, LAZY)])
def test_a_worker_on_a_gpu_learns_what_one_on_the_cpu_does(changes):
    found = [
        Peers(config(*changes, EXACT, *more), 1, N_MICROBATCHES).train(2)
        for more in ((), (ON_GPU,))
    ]
    numpy.testing.assert_allclose(found[1], found[0], atol=1e-4)


@pytest.mark.parametrize("plane", ["nccl", "shm"])
def test_workers_on_gpus_resume_with_another_number_of_workers(plane):
    text = config(WORDS, LAZY, ON_GPU)
    whole = Peers(text, 1, N_MICROBATCHES).train(2)
    peers = Peers(text, 2, N_MICROBATCHES, plane)
    peers.each("start_epoch", 0)
    peers.run(4)
    others = Peers(text, 3, N_MICROBATCHES, plane)
    others.step, others.optimizer = peers.step, peers.optimizer
    others.join(peers.weights(), peers.state(), list(peers.state()))
    others.each("go_to", peers.peers[0].place())
    while not others.run(5)[0].is_done:
        pass
    others.each("start_epoch", 1)
    while not others.run(5)[0].is_done:
        pass
    assert numpy.array_equal(others.weights(), whole)


@pytest.mark.parametrize("n_microbatches", [2, 4])
def test_a_worker_that_waits_for_the_gpu_of_a_dead_one_is_released(n_microbatches):
    text = config(FIXED, ON_GPU)
    peers = Peers(text, 2, n_microbatches, "nccl")
    peers.each("start_epoch", 0)
    survivor, before = peers.peers[0], peers.weights()
    place, told = survivor.place(), []

    def run():
        try:
            survivor.run(0, 1)
        except Aborted:
            told.append("aborted")

    waiting = threading.Thread(target=run)
    waiting.start()
    while not peers.communicators[0]._is_waiting:
        pass
    peers.communicators[0].abandon()
    waiting.join(30)
    assert told == ["aborted"]
    goes_on_alone(peers, before, place, text)


def test_a_gradient_of_a_gpu_that_is_not_finite_ends_the_run_and_changes_nothing():
    peers = Peers(config(FIXED, ON_GPU), 2, 2, "nccl")
    peers.each("start_epoch", 0)
    before = peers.weights()
    broken = peers.peers[1].plane.vectors[1]
    with broken.device:
        broken.fill(numpy.inf)
    with pytest.raises(TrainingError, match="gradient of step 1 is not finite.*colours/"):
        peers.run(1)
    assert numpy.array_equal(peers.weights(), before)


def test_two_workers_on_one_gpu_are_refused_in_a_line(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,3")
    with pytest.raises(DialogError, match='Duplicate GPU detected.*Set .* plane = "shm"'):
        Peers(config(FIXED, ON_GPU), 2, 2, "nccl")


def test_a_process_that_waits_for_a_dead_one_to_connect_ends(devices, monkeypatch):
    monkeypatch.setattr(devices.cuda.nccl, "_PATIENCE", 1.0)  # Real NCCL waits longer.
    monkeypatch.setattr(communicator, "ABORT_SECONDS", 0.1)
    ended, told, waiting = [], [], Communicator()
    monkeypatch.setattr(communicator.os, "_exit", ended.append)

    def connect():
        try:
            waiting.connect(2, unique_id(), 0)
        except Aborted:
            told.append("aborted")

    thread = threading.Thread(target=connect)
    thread.start()
    while not waiting._is_waiting:
        pass
    waiting.abandon()
    thread.join(30)
    assert 1 in ended and told == ["aborted"]


def test_a_connection_is_aborted_if_another_worker_dies_meanwhile(devices, monkeypatch):
    name, both, told = unique_id(), [Communicator(), Communicator()], []
    nccl, has_begun = devices.cuda.nccl, threading.Event()
    make, have_met = nccl.NcclCommunicator, threading.Barrier(2)

    def connected(*who):
        has_begun.set()
        made = make(*who)
        have_met.wait(30)  # If one aborted earlier, the other would wait.
        return made

    monkeypatch.setattr(nccl, "NcclCommunicator", connected)

    def connect(worker):
        try:
            both[worker].connect(2, name, worker)
        except Aborted:
            told.append(worker)

    connecting = threading.Thread(target=connect, args=(0,))
    connecting.start()
    assert has_begun.wait(30)  # If it was abandoned earlier, it would not connect.
    abandoning = threading.Thread(target=both[0].abandon)
    abandoning.start()
    while not both[0].is_abandoned:
        pass
    devices.cuda.Device(1).use()
    connect(1)
    for thread in (connecting, abandoning):
        thread.join(30)
    assert told == [0]
    with pytest.raises(RuntimeError, match="aborted"):
        both[0]._comm.size()


def test_a_worker_that_hears_of_a_death_before_it_joins_does_not_wait(devices, monkeypatch):
    monkeypatch.setattr(devices.cuda.nccl, "_PATIENCE", 5.0)
    actor = WorkerActor()
    actor.experiment = made(config(FIXED, ON_GPU))
    actor.teacher = actor.experiment.training_split()
    weights, state = actor.experiment.learner.weights.get(), {"kept": []}
    actor.abandon(3)
    given = (0, Slots(2, 2), unique_id(), 3, state, weights, {})
    assert actor.call("join_nccl", *given) is None
    assert actor.peer is not None


def test_why_there_is_no_nccl(devices, monkeypatch):
    assert why_no_nccl() == "" and unique_id() != unique_id()
    with monkeypatch.context() as patch:
        patch.setattr(devices.cuda.nccl, "get_build_version", lambda: 2604)
        assert why_no_nccl() == "CuPy has an old NCCL (2604)"
    monkeypatch.setattr(devices.cuda.nccl, "available", False)
    assert why_no_nccl() == "CuPy finds no NCCL"
