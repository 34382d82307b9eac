"""Asynchronous workers train on every example once, and read only their shares of a stream."""

import json
import random
from collections import Counter

import pytest

from tests.examples.test_reading import Numbers
from tests.runners.cluster.workers_in_threads import made
from tests.runners.resuming import FIXED, LIVE, NOTES, SORTED, UNSAVED, config
from thincdialog.api import Message, Teacher
from thincdialog.runners.cluster.async_runner import n_shares
from thincdialog.runners.cluster.async_worker import AsyncWorker
from thincdialog.runners.cluster.gradient_server import GradientServer, async_layout
from thincdialog.runners.shared_arrays import private_arrays

N_EPISODES, N_EPOCHS, N_MICROBATCHES = 50, 3, 2
GROWING = FIXED.replace(
    "size = 4\n",
    "\n[world.batcher.size]\n"
    '@schedules = "compounding.v1"\nstart = 2.0\nstop = 6.0\ncompound = 1.1\n',
)


@pytest.fixture(autouse=True)
def notes():
    """Yield the examples of each microbatch. If a microbatch is repeated, ``NOTES`` compares its
    examples."""
    NOTES.clear()
    yield NOTES
    NOTES.clear()


class Colours(Numbers):
    """A dataset of questions about two words that the agent knows."""

    def __getitem__(self, number):
        [message] = super().__getitem__(number)
        return [Message(message, labels=[("red", "blue")[number % 2]])]


def teacher_of(source, **options):
    teacher = Teacher({"train": source}, streaming=True, shuffle_window=4, **options)
    return teacher.for_split("train", training=True)


class Killed(Exception):
    """Raised in a worker to end it before it returns its result."""


class Run:
    """A server and some workers, which take turns."""

    def __init__(self, world, n_shares):
        self.text, self.n_shares = config(world, tasks=1), n_shares
        self.workers, self.sources, self.n_notes = [], [], 0
        self.start()

    def start(self):
        """Start a server that makes no steps with its own gradients."""
        experiment = made(self.text)
        parameters = experiment.learner.parameters
        values, ops = experiment.learner.weights, experiment.learner.model.ops
        arrays = private_arrays(async_layout(parameters.segments, 4))
        given = (parameters.segments, experiment.optimizer, ops, arrays)
        self.server = GradientServer(*given, bound=1000)
        self.server.values[:] = values
        self.origin = {}

    def join(self):
        experiment = made(self.text)
        self.sources.append(Colours(N_EPISODES))
        with experiment.working():
            teacher = teacher_of(self.sources[-1])
            self.workers.append(AsyncWorker(experiment, teacher, N_MICROBATCHES))
        self.workers[-1].go_to(self.origin)

    def start_epoch(self, epoch):
        self.origin = self.server.start_epoch(epoch, self.n_shares)
        for worker in self.workers:
            worker.go_to(self.origin)

    def work(self, number, n_units, is_killed=False):
        """Make a worker train on some units. If it is killed, its last unit is lost."""
        returned = []

        def exchange(number, learned, at):
            if learned is not None:
                returned.append(learned)
                if is_killed and len(returned) == n_units:
                    raise Killed
            self.server.end_at(float("inf") if len(returned) < n_units else 0)
            return self.server.exchange(number, learned, at)

        self.workers[number].connect(number, self.server.arrays, exchange)
        self.workers[number].work()

    def kill(self, number, n_units):
        try:
            self.work(number, n_units, is_killed=True)
        except Killed:
            pass
        self.workers.pop(number)
        self.server.ledger.restore(self.server.ledger.state())

    def resume(self):
        """Continue from a checkpoint, with a new server and other workers."""
        saved = json.loads(json.dumps([self.origin, self.server.ledger.state()]))
        self.start()
        self.origin, ledger = saved
        self.server.ledger.restore(ledger)
        self.workers = []


def counts(notes):
    return Counter(id for ids in notes.seen.values() for id in ids)


@pytest.mark.parametrize("world", [FIXED, GROWING, LIVE, SORTED, UNSAVED])
@pytest.mark.parametrize("n", [1, 3])
def test_async_workers_that_come_and_go_train_on_each_example_once(world, n, notes):
    run, draws = Run(world, n), random.Random(n)
    for epoch in range(N_EPOCHS):
        run.start_epoch(epoch)
        while not run.server.ledger.is_over:
            what = draws.choice(["work", "work", "work", "work", "join", "kill", "resume"])
            if not run.workers or (what == "join" and len(run.workers) < 4):
                run.join()
            number, n_units = draws.randrange(len(run.workers)), draws.randint(1, 3)
            if what == "kill":
                run.kill(number, n_units)
            elif what == "resume" and draws.random() < 0.3:
                run.resume()
            else:
                run.work(number, n_units)
    names = {f"{number}/0" for number in range(N_EPISODES)}
    assert counts(notes) == dict.fromkeys(names, N_EPOCHS)


@pytest.mark.parametrize("world", [FIXED, LIVE])
def test_async_workers_read_only_their_shares(world, notes):
    run = Run(world, 3)
    for _ in range(3):
        run.join()
    for epoch in range(N_EPOCHS):
        run.start_epoch(epoch)
        while not run.server.ledger.is_over:
            for number in range(3):
                run.work(number, 1)
    asked = [number for source in run.sources for number in source.asked]
    assert Counter(asked) == dict.fromkeys(range(N_EPISODES), N_EPOCHS)
    assert [len(set(source.asked)) for source in run.sources] == [16, 17, 17]
    # A worker that dies early costs the others only its share.
    run.start_epoch(N_EPOCHS)
    run.work(1, 1)
    run.kill(0, 2)
    for source in run.sources:
        source.asked.clear()
    while not run.server.ledger.is_over:
        for number in range(2):
            run.work(number, 1)
    assert set(counts(notes).values()) == {N_EPOCHS + 1}
    assert all(len(source.asked) <= 17 + 17 for source in run.sources)
    assert not run.sources[0].asked


def test_async_workers_share_only_streams_that_can_be_read_in_sections():
    class Whole:
        def __call__(self):
            yield from map(Numbers(9).__getitem__, range(9))

    streams = teacher_of(Numbers(9)), teacher_of(Numbers(2)), teacher_of(Whole())
    held = Teacher({"train": Numbers(9)}).for_split("train", training=True)
    assert [n_shares(teacher, 3) for teacher in (*streams, held)] == [3, 1, 1, 1]
    assert n_shares(streams[0], 1) == 1
