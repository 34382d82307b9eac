"""HogwildWorld: workers share the agent and the data, and all steps and examples count once."""

import io
import threading

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Adam, RAdam

from tests.processes import slow
from tests.training.examples import RANKER, quietly_train
from tests.worlds.talkers import Listener, expected_conversations, make_tasks, make_teacher, scored
from thincdialog.api import (
    BatchWorld,
    ConfigError,
    Experiment,
    Fixed,
    HogwildWorld,
    Message,
    PartnerWorld,
    ProtocolError,
    WorkerError,
)
from thincdialog.metrics import report_values
from thincdialog.optimizers.state import KEY
from thincdialog.protocol import Agent

WAIT = 20.0


@pytest.fixture
def new_workers():
    """Return a function that returns the threads of workers that this test has started."""

    def found():
        return [each for each in threading.enumerate() if each.name.startswith("worker ")]

    before = found()
    return lambda: [each for each in found() if each not in before]


def in_batches(teacher, agent):
    return BatchWorld(teacher, agent, Fixed(3))


def nested(teacher, agent):
    return HogwildWorld(teacher, agent, 2)


@pytest.mark.parametrize("make_world", [slow(PartnerWorld), in_batches, slow(nested)])
@given(
    lengths=st.lists(st.integers(1, 3), min_size=1, max_size=12),
    n_workers=st.integers(1, 5),
    n_tasks=st.integers(1, 2),
)
def test_hogwild_world_shows_every_example_once_and_scores_as_one(
    make_world, lengths, n_workers, n_tasks
):
    tasks = [lengths, [1, 2]][:n_tasks]
    one = PartnerWorld(scored(make_tasks(tasks, False)), Listener())
    while not one.epoch_done():
        one.parley()
    agent = Listener()
    teacher = scored(make_tasks(tasks, False))
    with HogwildWorld(teacher, agent, n_workers, make_world=make_world) as world:
        shown = []
        for epoch in range(2):
            while not world.epoch_done():
                world.parley()
                said = world.acts[0] if world.acts else []
                shown += [said] if isinstance(said, Message) else said
            assert world.report() == one.report()
            # Each finished parley is shown once, and no unfinished one is.
            assert sorted(each["id"] for each in shown) == sorted(one.agents[1].heard)
            shown.clear()
            world.start_epoch(epoch + 1, 0)
            world.reset_metrics()
    assert sorted(agent.conversations) == sorted(one.agents[1].conversations * 2)


class Meeting(Agent):
    """Answers when `n` workers have met and `open` is set."""

    def __init__(self, n):
        self.met, self.open = threading.Event(), threading.Event()
        self.barrier = threading.Barrier(n, action=self.met.set, timeout=WAIT)
        self.names = []

    def act(self):
        self.barrier.wait()
        assert self.open.wait(WAIT)
        self.names.append(threading.current_thread().name)
        return Message(text="yes")


def test_hogwild_world_parley_releases_one_worker_and_shutdown_joins_all(new_workers):
    agent = Meeting(3)
    world = HogwildWorld(make_teacher([1] * 6, False), agent, 3)
    for number in range(3):  # Each parley releases one worker, and waits for none.
        assert not agent.met.is_set() and agent.barrier.n_waiting <= number
        world.parley()
        assert world.acts == ()
    assert agent.met.wait(WAIT)
    assert len(new_workers()) == 3
    agent.open.set()
    world.shutdown()
    assert new_workers() == []
    assert sorted(agent.names) == ["worker 0", "worker 1", "worker 2"]
    assert world.report()["examples"].value() == 3
    with pytest.raises(ProtocolError, match=r"parley\(\) was called after shutdown"):
        world.parley()


def test_hogwild_world_starts_an_epoch_in_the_middle_of_another():
    agent = Listener()
    with HogwildWorld(make_teacher([2] * 9, True), agent, 2) as world:
        for _ in range(3):
            world.parley()
        world.start_epoch(1, 5)
        agent.conversations.clear()
        while not world.epoch_done():
            world.parley()
    assert sorted(agent.conversations) == expected_conversations([2] * 9)


def learning():
    experiment = Experiment.from_config(RANKER)
    teacher = experiment.training_split()
    experiment.initialize(teacher, io.StringIO())
    return experiment, teacher


def test_hogwild_world_trains_the_weights_that_all_workers_share():
    experiment, teacher = learning()
    before, losses, n_batches = experiment.learner.weights.copy(), [], 0
    optimizer = Adam(0.01)
    with experiment.working():
        with HogwildWorld(teacher, experiment.agent, 2, optimizer, experiment.make_world) as world:
            for epoch in range(6):
                world.start_epoch(epoch, experiment.seed)
                while not world.epoch_done():
                    world.parley()
                    n_batches += bool(world.acts)
                report = report_values(world.report())
                losses.append(report["loss"])
                world.reset_metrics()
                assert report["examples"] == teacher.n_examples
    assert losses[-1] < 0.7 * losses[0]
    assert not numpy.array_equal(experiment.learner.weights, before)
    assert optimizer.nr_update[KEY] == n_batches == 6 * 14


def test_hogwild_world_steps_schedules_once_a_step():
    experiment, teacher = learning()
    rates = iter(0.1 / n for n in range(1, 1000))
    optimizer = Adam(rates)
    with experiment.working():
        with HogwildWorld(teacher, experiment.agent, 3, optimizer, experiment.make_world) as world:
            while not world.epoch_done():
                world.parley()
            assert next(rates) == 0.1 / (optimizer.nr_update[KEY] + 2)


@pytest.mark.parametrize(
    "given, said",
    [
        (
            (2,),
            r"needs an optimizer to train: .* HogwildWorld\(teacher, agent, n_workers, optimizer\)",
        ),
        ((2, RAdam(0.1)), "cannot train with this optimizer: it is RAdam"),
        ((0, Adam(0.1)), "n_workers = 0: give 1 or more"),
    ],
)
def test_hogwild_world_refuses_invalid_arguments(given, said):
    experiment, teacher = learning()
    with pytest.raises(ProtocolError, match=said):
        HogwildWorld(teacher, experiment.agent, *given)


def test_hogwild_world_evaluates_in_any_config():
    block = """[evaluation.world]
@worlds = "thincdialog.HogwildWorld.v1"
n_workers = 3

[evaluation.world.conversation]
@worlds = "thincdialog.BatchWorld.v1"

[evaluation.world.conversation.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 5
"""
    one, _ = quietly_train(RANKER, training__max_epochs=1)
    several, _ = quietly_train(f"{RANKER}\n{block}", training__max_epochs=1)
    assert one.scores["test"] == several.scores["test"]
    with pytest.raises(
        ConfigError,
        match=r"\[evaluation.world\] cannot be used: .* evaluate ranker: its replies depend on",
    ):
        quietly_train(f"{RANKER}\n{block}", agent__eval_candidates="batch")
    with pytest.raises(
        ConfigError, match=r"\[world\] cannot be used: .* trains with several workers"
    ):
        quietly_train(
            RANKER[: RANKER.index("[world]")]
            + block.replace("evaluation.", "")
            + RANKER[RANKER.index("[training]") :]
        )


class Failing(Listener):
    def act(self):
        if self.turns == ["5/0"]:
            raise ValueError("no such answer")
        return super().act()


def test_hogwild_world_says_which_example_a_worker_failed_at(new_workers):
    with pytest.raises(WorkerError, match=r"no such answer[\s\S]*5/0"):
        with HogwildWorld(make_teacher([1] * 9, False), Failing(), 2) as world:
            while not world.epoch_done():
                world.parley()
    assert new_workers() == []
