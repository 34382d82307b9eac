"""Many workers as one world: every example once, in bounded time."""

import json
import threading
import time
from itertools import groupby
from typing import Any, Callable, List, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parallel import toys
from thincdialog.errors import ConfigError, ProtocolError, WorkerError
from thincdialog.parallel import ThreadWorkers
from thincdialog.worlds import HogwildWorld, World, WorldWorker
from thincdialog.worlds.hogwild_world import LateWorkerError
from thincdialog.worlds.orders import AHEAD, TURN


def make_world(
    n_workers: int,
    max_wait: float = 20.0,
    n_episodes: int = 10,
    n_turns: int = 1,
    n_tasks: int = 1,
    training: bool = True,
    **settings: Any,
) -> HogwildWorld:
    teacher = toys.make_teacher(n_episodes, n_turns, n_tasks, training)

    def make_worker(worker: int) -> WorldWorker:
        return toys.make_worker(worker, {}, n_workers=n_workers, teacher=teacher, **settings)

    return HogwildWorld(ThreadWorkers(make_worker, n_workers), max_wait=max_wait)


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["partner", "batch", "dynamic"]),
    n_workers=st.integers(1, 4),
    n_episodes=st.integers(1, 25),
    n_turns=st.integers(1, 3),
    n_tasks=st.integers(1, 3),
    training=st.booleans(),
)
def test_hogwild_world_shows_every_example_once_an_epoch(
    kind, n_workers, n_episodes, n_turns, n_tasks, training
):
    shape = {"n_episodes": n_episodes, "n_turns": n_turns, "n_tasks": n_tasks}
    expected = toys.all_ids(n_episodes, n_turns, n_tasks)
    with make_world(n_workers, kind=kind, training=training, **shape) as world:
        for epoch in range(2):
            world.start_epoch(epoch, 1)
            world.reset_metrics()
            results = toys.run_epoch(world)
            assert toys.ids_of(results) == expected
            assert world.n_running == 0
            report = world.report()
            assert report["seen"].value() == report["examples"].value() == len(expected)
    one = toys.make_worker(0, {}, n_workers=1, kind=kind, training=training, **shape)
    one.start_epoch(0, 1)
    while not one.parley(None).epoch_done:
        pass
    # To the bit, with metrics of each task, and means over tasks.
    assert one.report() == report


def test_hogwild_world_releases_one_worker_for_one_parley():
    with make_world(3, n_episodes=30) as world:
        for n in range(1, 8):
            world.parley(n)
            world.drain()
            assert world.n_running == 0
            ((order, _, ids),) = world.finished()
            assert order == n and len(ids) == 1
        assert world.report()["seen"].value() == 7


class Gate(World):
    """A parley lasts until it may end."""

    def __init__(self) -> None:
        super().__init__([])
        self.gate = threading.Semaphore(0)
        self.n_parleys = 0

    def epoch_done(self) -> bool:
        return False

    def _parley(self) -> None:
        assert self.gate.acquire(timeout=20)
        self.n_parleys += 1


def make_gates(n: int, at_once: Optional[int] = None, **settings: Any):
    gates = [Gate() for _ in range(n)]
    workers = ThreadWorkers(lambda worker: WorldWorker(gates[worker]), n, **settings)
    return gates, HogwildWorld(workers, at_once=at_once, max_wait=20)


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_hogwild_world_gives_work_to_whoever_has_least_and_waits_when_all_have_enough():
    gates, world = make_gates(2)
    with world:
        for n in range(2 * AHEAD):
            assert world.n_running == n
            world.parley()
        assert not world.epoch_done()  # Without waiting.
        began = time.monotonic()
        threading.Timer(0.3, gates[1].gate.release).start()
        world.parley()
        assert time.monotonic() - began >= 0.25
        assert len(world.finished()) == 1
        # Nobody waits for the slow one.
        for _ in range(50):
            gates[1].gate.release()
            world.parley()
        wait_until(lambda: gates[1].n_parleys == 51)
        assert gates[0].n_parleys == 0
        for gate in gates:
            gate.gate.release(10)
        world.drain()
        assert gates[0].n_parleys == AHEAD
        assert gates[0].n_parleys + gates[1].n_parleys == 2 * AHEAD + 51


class Counted(World):
    """Knows how many of its kind are at a parley."""

    lock = threading.Lock()

    def __init__(self, counts: Any, n_parleys: int) -> None:
        super().__init__([])
        self.counts, self.left = counts, n_parleys

    def epoch_done(self) -> bool:
        return self.left == 0

    def _parley(self) -> None:
        with self.lock:
            self.counts["now"] += 1
            self.counts["most"] = max(self.counts["most"], self.counts["now"])
        time.sleep(0.0005)
        with self.lock:
            self.counts["now"] -= 1
        self.left -= 1


@settings(max_examples=15)
@given(
    at_once=st.integers(1, 4),
    shares=st.lists(st.integers(0, 40), min_size=1, max_size=6),
)
def test_hogwild_world_lets_no_more_parley_at_once_than_it_may(at_once, shares):
    counts = {"now": 0, "most": 0}
    worlds = [Counted(counts, n) for n in shares]
    workers = ThreadWorkers(lambda worker: WorldWorker(worlds[worker]), len(shares))
    with HogwildWorld(workers, at_once=at_once, max_wait=20) as world:
        while not world.epoch_done():
            world.parley()
    assert counts["most"] <= at_once
    assert [each.left for each in worlds] == [0] * len(shares)


def test_hogwild_world_lets_workers_take_turns_and_nobody_waits_for_the_slow_one():
    gates, world = make_gates(4, at_once=2)
    with world:
        for gate in gates[1:]:
            gate.gate.release(1000)
        for _ in range(20 * TURN):
            world.parley()
        # The first hangs on to its place; the others share the second place, equally.
        wait_until(lambda: sum(gate.n_parleys for gate in gates) == 20 * TURN - AHEAD)
        done = [gate.n_parleys for gate in gates]
        assert done[0] == 0
        assert max(done[1:]) - min(done[1:]) <= TURN + AHEAD
        gates[0].gate.release(1000)
        world.drain()
        assert gates[0].n_parleys == AHEAD


def test_hogwild_world_lets_workers_take_turns_in_every_epoch_alike():
    shares, made = (60, 50), []

    class Share(Counted):
        def __init__(self, number: int) -> None:
            super().__init__({"now": 0, "most": 0}, 0)
            self.number = number

        def start_epoch(self, epoch: int, seed: int) -> None:
            self.left = shares[self.number]

        def _parley(self) -> None:
            made.append(self.number)
            self.left -= 1

    workers = ThreadWorkers(lambda worker: WorldWorker(Share(worker)), 2)
    with HogwildWorld(workers, at_once=1, max_wait=20) as world:
        for epoch in range(6):
            world.start_epoch(epoch, 0)
            while not world.epoch_done():
                world.parley()
            runs = [len(list(run)) for _, run in groupby(made[:100])]
            assert max(runs) <= 2 * TURN and len(made) == sum(shares)
            made.clear()


@pytest.mark.parametrize("at_once", [0, -1])
def test_hogwild_world_needs_somebody_at_parleys(at_once):
    with pytest.raises(ValueError, match="1 or more"):
        make_gates(2, at_once=at_once)


def test_hogwild_world_an_order_that_finds_nothing_left_goes_to_another():
    # Worker 0 has one episode, worker 1 has twenty.
    def make_worker(worker: int) -> WorldWorker:
        agent = toys.Noting(delay=0.002)
        numbers = range(1) if worker == 0 else range(1, 21)
        source = {"train": lambda: toys.make_episodes(numbers, 1)}
        teacher = toys.Teacher(source).for_split("train")
        return toys.NotingWorker(worker, agent, toys.make_world("partner", teacher, agent))

    with HogwildWorld(ThreadWorkers(make_worker, 2), max_wait=20) as world:
        for order in range(21):
            world.parley(order)
        world.drain()
        results = world.finished()
        # Exactly as many parleys as were asked for, each order once.
        assert sorted(order for order, _, _ in results) == list(range(21))
        assert toys.ids_of(results) == toys.all_ids(21)
        assert world.epoch_done()


def test_hogwild_world_is_done_when_nobody_has_anything():
    with make_world(4, n_episodes=2) as world:
        world.start_epoch(0, 0)
        assert not world.epoch_done()
        assert toys.ids_of(toys.run_epoch(world)) == ["0/0", "1/0"]
        with pytest.raises(ProtocolError, match="epoch is done"):
            world.parley()


class Nothing(World):
    """There is nothing to show."""

    def __init__(self) -> None:
        super().__init__([])

    def epoch_done(self) -> bool:
        return True


def test_hogwild_world_an_order_that_nobody_has_anything_for_comes_to_nothing():
    with HogwildWorld(ThreadWorkers(lambda worker: WorldWorker(Nothing()), 2)) as world:
        assert not world.epoch_done()  # Nobody was asked yet.
        for _ in range(10):
            world.parley()
            if world.epoch_done():
                break
        assert world.epoch_done() and world.finished() == [] and world.n_running == 0


def test_hogwild_world_starts_an_epoch_in_the_middle_of_another():
    with make_world(2, n_episodes=40, delay=0.002) as world:
        for epoch in range(3):
            world.start_epoch(epoch, 0)
            world.reset_metrics()
            for _ in range(7):
                world.parley()
        world.start_epoch(3, 0)
        assert len(world.finished()) == 21
        world.reset_metrics()
        assert toys.ids_of(toys.run_epoch(world)) == toys.all_ids(40)
        assert world.report()["seen"].value() == 40


def test_hogwild_world_reset_drops_conversations():
    with make_world(2, n_episodes=2, n_turns=3) as world:
        world.start_epoch(0, 0)
        world.parley()
        world.parley()
        world.reset()
        assert sorted(ids for _, _, ids in world.finished()) == [["0/0"], ["1/0"]]
        assert world.epoch_done()  # The other turns are gone with their episodes.


@pytest.mark.parametrize("kind", ["partner", "batch", "dynamic"])
@pytest.mark.parametrize("n_parleys", [0, 3, 11])
def test_hogwild_world_goes_on_where_its_state_was_taken(kind, n_parleys):
    shape = {"kind": kind, "n_episodes": 30, "n_turns": 2, "n_tasks": 2}
    with make_world(3, **shape) as world:
        world.start_epoch(1, 5)
        for _ in range(n_parleys):
            world.parley()
        state = json.loads(json.dumps(world.state()))
        before = toys.ids_of(world.finished())
        after = toys.ids_of(toys.run_epoch(world))
    with make_world(3, **shape) as world:
        world.start_epoch(0, 0)
        world.parley()
        world.restore(state)
        world.finished()
        assert toys.ids_of(toys.run_epoch(world)) == after
    assert sorted(before + after) == toys.all_ids(30, 2, 2)


def test_hogwild_world_state_is_of_as_many_workers():
    with make_world(2) as world:
        state = world.state()
    with make_world(3) as world:
        with pytest.raises(ConfigError) as caught:
            world.restore(state)
    assert "[hogwild] workers is 3, but what was saved is of 2 - set it to 2" in str(caught.value)


def test_hogwild_world_a_worker_that_raises_stops_it():
    with make_world(2, n_episodes=50, wrong={"20/0": "raise"}) as world:
        with pytest.raises(WorkerError) as caught:
            toys.run_epoch(world)
        error = caught.value
        assert error.worker in (0, 1)
        assert error.examples == ["20/0"]
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert 'raise ZeroDivisionError("nothing is left")' in error.traceback
        first, second, *trace = str(error).splitlines()
        assert first == f"Worker {error.worker}: ZeroDivisionError: nothing is left"
        assert second == "Examples at hand: 20/0"
        assert "\n".join(trace) == error.traceback
        # Nothing else comes of it.
        for call in (world.parley, world.drain, world.epoch_done, world.report, world.finished):
            with pytest.raises(WorkerError) as again:
                call()
            assert again.value is error


def test_hogwild_world_a_worker_that_raises_in_a_batch_names_all_of_it():
    with make_world(1, kind="batch", n_episodes=8, training=False, wrong={"6/0": "raise"}) as world:
        with pytest.raises(WorkerError) as caught:
            toys.run_epoch(world)
    assert caught.value.examples == ["4/0", "5/0", "6/0", "7/0"]


def test_hogwild_world_what_a_user_can_mend_has_no_traceback():
    with make_world(2, n_episodes=9, wrong={"4/0": "data"}) as world:
        with pytest.raises(WorkerError) as caught:
            toys.run_epoch(world)
    text = "days.txt:7  the sky is 'green', expected blue or grey"
    assert str(caught.value) == f"Worker {caught.value.worker}: {text}"


def test_hogwild_world_waits_no_longer_than_it_may():
    gates, world = make_gates(2, stop_seconds=0.2)
    world.max_wait = 0.3
    with world:
        world.parley()
        gates[0].gate.release()
        world.drain()
        world.parley()
        world.parley()
        began = time.monotonic()
        with pytest.raises(WorkerError) as caught:
            world.drain()
        assert 0.3 <= time.monotonic() - began < 5
        assert str(caught.value) == (
            "Worker 0: no answer within 0.3 seconds (nor from 1): it hangs, or is very slow"
        )
        for gate in gates:
            gate.gate.release(5)


def test_hogwild_world_waits_a_while_for_all_when_the_run_is_to_end():
    asked: List[float] = []
    gates, world = make_gates(3)
    world.is_ending, world.end_seconds = lambda: bool(asked), 1.5
    with world:
        for _ in range(6):
            world.parley()
        threading.Timer(0.2, lambda: asked.append(time.monotonic())).start()
        # One goes on: it is no matter of how long ago the last answer was.
        for tenth in range(5, 40, 5):
            threading.Timer(tenth / 10, gates[1].gate.release).start()
        with pytest.raises(LateWorkerError) as caught:
            world.drain()
        assert 1.4 <= time.monotonic() - asked[0] < 4.5
        text = (
            "no answer 1.5 seconds after the run was to end (nor from 2): it hangs, or is very slow"
        )
        assert str(caught.value) == f"Worker 0: {text}"
        began = time.monotonic()
    # They hang, so there is nothing to wait for.
    assert time.monotonic() - began < 5
    for gate in gates:
        gate.gate.release(5)


def test_hogwild_world_that_is_to_end_goes_on_while_workers_answer():
    with make_world(2, n_episodes=20, delay=0.01) as world:
        world.is_ending, world.end_seconds = lambda: True, 0.0
        assert toys.ids_of(toys.run_epoch(world)) == toys.all_ids(20)


def test_hogwild_world_an_interrupt_leaves_only_shutdown():
    class Interrupting(ThreadWorkers):
        def wait(self, seconds: float):
            answer = super().wait(seconds)
            if answer is not None:
                raise KeyboardInterrupt
            return answer

    def make_worker(worker: int) -> WorldWorker:
        return toys.make_worker(worker, {})

    with HogwildWorld(Interrupting(make_worker, 2), max_wait=20) as world:
        with pytest.raises(KeyboardInterrupt):
            world.start_epoch(0, 0)
        with pytest.raises(ProtocolError, match="after KeyboardInterrupt: only shutdown"):
            world.report()


def test_hogwild_world_shutdown_ends_the_workers():
    n_before = threading.active_count()
    world = make_world(3, n_episodes=100, delay=0.01)
    world.parley()
    world.shutdown()
    world.shutdown()
    assert threading.active_count() == n_before
    calls: List[Any] = [world.parley, world.report, world.epoch_done, world.drain, world.state]
    for call in calls:
        with pytest.raises(ProtocolError, match=r"after shutdown\(\)"):
            call()
