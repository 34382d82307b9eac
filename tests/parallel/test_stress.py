"""Nothing hangs: workers start, run epochs, reset, fail, die and stop, at random times."""

import random
import threading
import time
from typing import Any, Callable, Dict

import pytest
from thincdialog.parallel import ProcessWorkers, ThreadWorkers

from tests.parallel import toys
from thincdialog.errors import WorkerError
from thincdialog.worlds import HogwildWorld, Workers

# What a cycle may take at most, on a machine that is busy with other things.
LIMIT = 60.0
N_EPISODES = 24


def threads(settings: Dict[str, Any], n: int) -> Workers:
    return ThreadWorkers(lambda worker: toys.make_worker(worker, {}, n_workers=n, **settings), n)


def processes(settings: Dict[str, Any], n: int) -> Workers:
    return ProcessWorkers(toys.recipe(n_workers=n, **settings), n)


def run_cycle(
    rng: random.Random, make: Callable[..., Workers], failures: Dict[str, str], most: int
) -> bool:
    """Start workers, do some of everything, stop. Whether one of them failed.

    most (int): Workers.
    """
    settings = {
        "kind": rng.choice(["partner", "batch", "dynamic"]),
        "n_episodes": N_EPISODES,
        "n_turns": rng.randint(1, 2),
        "delay": rng.choice([0, 0.0005, 0.004]),
    }
    how = rng.choice(["", "", *failures])
    wrong = f"{rng.randrange(N_EPISODES)}/0"
    if how:
        settings["wrong"] = {wrong: how}
    expected = toys.all_ids(N_EPISODES, settings["n_turns"])
    is_whole = False
    with HogwildWorld(make(settings, rng.randint(1, most)), max_wait=LIMIT / 2) as world:
        try:
            for epoch in range(rng.randint(1, 3)):
                world.start_epoch(epoch, rng.randrange(100))
                world.reset_metrics()
                world.finished()
                what = rng.choice(["all", "all", "some", "reset", "restore", "stop"])
                if what == "all":
                    assert toys.ids_of(toys.run_epoch(world)) == expected
                    assert world.report()["seen"].value() == len(expected)
                    is_whole = True
                    continue
                run_some(world, rng.randint(0, 6))
                time.sleep(rng.random() * settings["delay"])
                if what == "reset":
                    world.reset()
                    toys.run_epoch(world)
                elif what == "restore":
                    state = world.state()
                    before = world.finished()
                    run_some(world, 1)
                    world.restore(state)
                    world.finished()
                    assert toys.ids_of(before + toys.run_epoch(world)) == expected
                    is_whole = True
                elif what == "stop":
                    break
        except WorkerError as error:
            assert how and failures[how] in str(error)
            if how == "raise":
                assert wrong in error.examples
            return True
    assert not (how and is_whole)  # It would have met the one that is wrong.
    return False


def run_some(world: HogwildWorld, n: int) -> None:
    for _ in range(n):
        if not world.epoch_done():
            world.parley()


def run_cycles(
    n: int, make: Callable[..., Workers], failures: Dict[str, str], most: int = 4
) -> None:
    n_threads = threading.active_count()
    n_failed = 0
    for seed in range(n):
        began = time.monotonic()
        n_failed += run_cycle(random.Random(seed), make, failures, most)
        assert time.monotonic() - began < LIMIT, seed
        assert threading.active_count() == n_threads, seed
    assert n_failed < n and (n_failed or n < 10)


IN_THREADS = {"raise": "ZeroDivisionError", "data": "the sky", "interrupt": "KeyboardInterrupt"}
IN_PROCESSES = {**IN_THREADS, "kill": "SIGKILL", "exit": "exit code 3"}


def test_stress_threads():
    run_cycles(60, threads, IN_THREADS)


@pytest.mark.slow
def test_stress_threads_200_cycles():
    run_cycles(200, threads, IN_THREADS)


def test_stress_processes():
    run_cycles(3, processes, IN_PROCESSES, most=2)


@pytest.mark.slow
def test_stress_processes_30_cycles():
    run_cycles(30, processes, IN_PROCESSES)
