"""Actors that start, answer, fail, hang and die, and the errors that callers get."""

import io
import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from thincdialog.errors import DataError, DialogError, WorkerError
from thincdialog.loader.failure import Failure
from thincdialog.runners.cluster import ray_cluster, workers
from thincdialog.runners.cluster.ray_cluster import RayCluster
from thincdialog.runners.cluster.workers import Died, Workers
from thincdialog.runners.patience import Patience
from thincdialog.training.interruption import Interrupted, Interruption

pytestmark = pytest.mark.xdist_group("ray")


def toy():
    """Return a class that Ray pickles by value."""

    class Toy:
        gets_on = False

        def call(self, name, how="", *_):
            if how == "die":
                os._exit(1)
            if name == "progress":
                return int(10 * time.monotonic()) if self.gets_on else 0
            if how == "hang":
                time.sleep(600)
            if name in ("evaluate", "nothing"):
                self.gets_on = name == "evaluate"
                time.sleep(4.5)
            if how == "data":
                error = DataError("tea.jsonl", "the cup is empty", 7)
                return Failure.of(error)._replace(cause=None)
            return threading.Lock() if how == "lock" else os.getpid()

    return Toy


@pytest.fixture
def started(cluster, monkeypatch):
    """Yield a function that starts toys, which do as `how` says when they begin."""
    monkeypatch.setattr(workers, "WorkerActor", toy())
    monkeypatch.setattr(workers, "recipe_of", lambda *given, **more: "")
    monkeypatch.setattr(RayCluster, "check_room", lambda *given: None)
    teams = []

    def start(*how, received=None, **times):
        interruption, told = Interruption(), io.StringIO()
        interruption.received = received
        settings = dict.fromkeys(("address", "num_cpus", "object_store_memory"))
        settings.update(plane="auto", num_gpus_per_worker=0)
        given = {"settings": settings, "num_workers": 0, "note": told.write}
        made = Workers(SimpleNamespace(interruption=interruption, experiment=None, **given), None)
        made.patience, made.told = Patience(interruption, told.write, **times), told
        for each in how:
            made.runner.num_workers += 1
            made._sent = each
            made._start_missing()
        teams.append(made)
        return made

    yield start
    for each in teams:
        each.end()


def test_workers_waits_for_as_many_as_it_needs(started):
    made = started("hang", "")
    assert made.join(at_least=1) == 1
    assert (len(made.actors), len(made._starting), made.has_started()) == (1, 1, False)
    assert made.join() == 0
    assert made.each("work") == made.pids


def test_workers_a_start_that_dies_is_reported(started):
    made = started("die", "")
    with pytest.raises(Died) as caught:
        made.join(at_least=2)
    assert (caught.value.workers, caught.value.is_server) == ([], False)
    assert caught.value.who == "a worker that was about to start"
    assert len(made.actors) + made.join(at_least=1) >= 1 and len(made.actors) == 1


def test_workers_waits_no_longer_than_its_limits(started, monkeypatch):
    monkeypatch.setattr(workers, "START_SECONDS", 0.1)
    made = started("hang", max_wait=2.0)
    with pytest.raises(WorkerError, match="no answer within 2 seconds"):
        made.join(at_least=1)
    said = "1 workers have not started yet: they are reading data, or waiting"
    assert made.told.getvalue().count(said) == 1
    made = started("hang", received=signal.SIGTERM, end_seconds=0.1)
    with pytest.raises(Interrupted), made.patience.interruption.waiting():  # As in training.
        made.join(at_least=1)
    assert "0.1 seconds after the run should have ended" in made.told.getvalue()
    assert "Nothing more can be saved" in made.told.getvalue()


def test_workers_waits_longer_for_workers_that_make_progress(started):
    made = started("", "")
    made.join(at_least=2)
    made.patience.max_wait = 2.0
    assert made.each("evaluate") == made.pids
    with pytest.raises(WorkerError, match="no answer within 2 seconds"):
        made.each("nothing")


def test_workers_only_workers_that_are_gone_have_died(started):
    made = started("", "")
    made.join(at_least=2)
    with pytest.raises(WorkerError, match="^Worker 1: .*pickle.*lock"):
        made.each("work", ["", "lock"])
    with pytest.raises(DataError, match="^tea.jsonl:7  the cup is empty .read by worker 1.$"):
        made.each("work", ["", "data"])
    with pytest.raises(Died) as caught:
        made.each("work", ["", "die"])
    assert (caught.value.workers, caught.value.who) == ([1], "worker 1")
    made.runner.num_workers, made.runner.n_restarts = 1, 0
    made.runner.settings["max_restarts"], made.runner.workers = 1, None
    made.recover(caught.value)
    assert made.each("work") == made.pids and len(made.pids) == 1
    assert "worker 1 died (0." in made.told.getvalue()


def test_ray_cluster_room_is_checked(cluster, monkeypatch):
    found = RayCluster(None, None, None)
    here = RayCluster(None, None, None, plane="shm")
    for each in (found, here):  # Actors of earlier tests may still be ending.
        each.check_room(4, 0.5)
    monkeypatch.setattr(ray_cluster, "FREE_SECONDS", 1)
    with pytest.raises(DialogError, match="num_workers = 5 needs 5 CPUs, but this node has 4"):
        here.check_room(5, 0)
    # Both GPUs have 0.4 left.
    with pytest.raises(DialogError, match="num_workers = 3, but .* 1 CPU and 0.6 GPUs of one node"):
        found.check_room(3, 0.6)
    holding = cluster.remote(toy()).options(num_cpus=3).remote()
    cluster.get(holding.call.remote("hold"))
    found.check_room(1, 0)
    for each, where in ((found, "the Ray cluster"), (here, "this node")):
        with pytest.raises(DialogError, match=f"{where} does not have 1 CPU .* free for each of"):
            each.check_room(2, 0)
    cluster.kill(holding)
