"""A world that is saved between parleys resumes as if it had not been interrupted."""

import json
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import compounding

from tests.examples.talk import through_json
from tests.worlds.talkers import (
    BATCHERS,
    BatchListener,
    Listener,
    TruncatingListener,
    WholeListener,
    make_batcher,
    make_tasks,
    make_teacher,
    make_wordy,
)
from thincdialog.agents.conversation import ConversationAgent
from thincdialog.batchers import Batchsort, Fixed, Words
from thincdialog.errors import DataError, ProtocolError
from thincdialog.examples import Batch
from thincdialog.messages import Message
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.protocol import Learner, StepReport
from thincdialog.worlds import (
    BatchWorld,
    DynamicBatchWorld,
    MultiAgentWorld,
    PartnerWorld,
)


class Talker(ConversationAgent):
    """Replies with its history, of which each reply becomes part."""

    def batch_act(self, observations):
        turns = Batch.of(observations).turns(self.history_size)
        return [Message(text=" ".join(text for _, text in each)) for each in turns]


def record(world):
    """Run one parley. Return the id, the limit of tokens and the reply of each message."""
    world.parley()
    heard, replies = world.acts
    if isinstance(heard, Message):
        heard, replies = [heard], [replies]
    return [
        (message["id"], message.get("max_tokens"), reply["text"])
        for message, reply in zip(heard, replies)
    ]


def check_resume(make_world, seed, n_before):
    """Save a world after some parleys, and check that a new world continues in the same way, also
    in the next epochs."""
    unbroken = make_world()
    unbroken.start_epoch(3, seed)
    for _ in range(n_before):
        if not unbroken.epoch_done():
            record(unbroken)
    state = through_json(unbroken.state())
    resumed = make_world()
    resumed.restore(state)
    assert through_json(resumed.state()) == state
    for epoch in (4, 5):
        while not unbroken.epoch_done():
            assert not resumed.epoch_done()
            assert record(resumed) == record(unbroken)
        assert resumed.epoch_done()
        for world in (unbroken, resumed):
            world.start_epoch(epoch, seed)


@pytest.mark.parametrize("world_kind", [PartnerWorld, DynamicBatchWorld, BatchWorld])
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=15),
    n_tasks=st.integers(1, 3),
    kind=st.sampled_from(BATCHERS),
    size=st.integers(1, 6),
    buffer=st.integers(1, 12),
    agent_kind=st.sampled_from([Listener, BatchListener, WholeListener, Talker]),
    data=st.fixed_dictionaries(
        {
            "repeat": st.booleans(),
            "streaming": st.booleans(),
            "single_turn": st.booleans(),
            "shuffle_window": st.integers(1, 20),
        }
    ),
    training=st.booleans(),
    seed=st.integers(-3, 9),
    n_before=st.integers(0, 40),
)
def test_resume_anywhere(
    world_kind, lengths, n_tasks, kind, size, buffer, agent_kind, data, training, seed, n_before
):
    def make_world():
        tasks = [lengths, [1, 1, 3], [2]][:n_tasks]
        if data["single_turn"]:
            tasks = [[1] * sum(task) for task in tasks]
        teacher = make_tasks(tasks, training, **data)
        if world_kind is PartnerWorld:
            return PartnerWorld(teacher, agent_kind())
        return world_kind(teacher, agent_kind(), make_batcher(kind, size, buffer))

    check_resume(make_world, seed, n_before)


@pytest.mark.parametrize("n_before", [0, 1, 4, 9])
def test_resume_with_schedules_and_truncated_texts(n_before):
    words = [[(5 * n % 43, n % 7)] * (1 + n % 2) for n in range(40)]

    def make_world():
        batcher = Words(compounding(12, 60, 1.1), buffer=3, oversize="truncate")
        return DynamicBatchWorld(make_wordy(words, True), TruncatingListener(), batcher)

    check_resume(make_world, 1, n_before)

    def make_growing():
        return BatchWorld(
            make_teacher([1, 2, 3] * 9, True), Talker(), Fixed(compounding(1, 9, 1.2))
        )

    check_resume(make_growing, 1, n_before)


@pytest.mark.parametrize("n_before", range(1, 12))
def test_resume_with_sizes_that_shrink_and_grow(n_before):
    def make_world():
        sizes = chain([8, 8, 8, 2, 2, 2, 6, 6, 8, 3, 9], repeat(5))
        return BatchWorld(make_teacher([1, 2, 3, 5, 3] * 8, True), Talker(), Fixed(sizes))

    check_resume(make_world, 1, n_before)


def test_state_holds_no_texts_of_the_data():
    words = [[(400, 300)] * 2] * 50
    world = DynamicBatchWorld(make_wordy(words, True), BatchListener(), Batchsort(4, 4))
    world.start_epoch(0, 0)
    for _ in range(3):
        world.parley()
    assert len(world.buffer) == 16
    assert len(json.dumps(world.state())) < 16 * 150


def test_states_of_another_world_or_data_are_refused():
    world = MultiAgentWorld([make_teacher([2], True), Listener()])
    with pytest.raises(ProtocolError, match=r"MultiAgentWorld.state\(\).*cannot be saved"):
        world.state()
    partner = PartnerWorld(make_teacher([2], True), Listener())
    dynamic = DynamicBatchWorld(make_teacher([9] * 9, True), Listener(), Batchsort(2, 2))
    with pytest.raises(ProtocolError, match="given the state of a PartnerWorld"):
        dynamic.restore(partner.state())
    dynamic.parley()
    dynamic.parley()
    with pytest.raises(ProtocolError, match="given the state of a DynamicBatchWorld"):
        partner.restore(dynamic.state())
    fewer = DynamicBatchWorld(make_teacher([1], True), Listener(), Batchsort(2, 2))
    with pytest.raises(DataError, match="task .*not the same as when the state was saved"):
        fewer.restore(dynamic.state())


WORLDS = {
    "whole": lambda teacher: BatchWorld(teacher, WholeListener(), Batchsort(2, 4)),
    "rows": lambda teacher: BatchWorld(teacher, Listener(), Fixed(3)),
    "dynamic": lambda teacher: DynamicBatchWorld(teacher, Listener(), Batchsort(2, 4)),
    "partner": lambda teacher: PartnerWorld(teacher, Listener()),
}


def saved_after(world, n_before, epoch=0):
    world.start_epoch(epoch, 0)
    for _ in range(n_before):
        world.parley()
    return through_json(world.state())


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("n_now", [1, 2, 6, 13, 29, 31])
def test_state_of_more_or_less_data_is_refused(kind, n_now, streaming):
    settings = {"streaming": streaming, "single_turn": streaming}
    for n_before in (1, 3, 6):
        state = saved_after(WORLDS[kind](make_teacher([1] * 30, True, **settings)), n_before)
        world = WORLDS[kind](make_teacher([1] * n_now, True, **settings))
        with pytest.raises(DataError, match="when the state was saved"):
            world.restore(state)
            world.parley()


@pytest.mark.parametrize("lengths", [[3] * 4, [1] * 10, [2] * 9, [4] * 10])
@pytest.mark.parametrize("n_tasks", [1, 2])
def test_state_of_conversations_of_other_lengths_is_refused(lengths, n_tasks):
    others = [[1, 2]] * (n_tasks - 1)
    for n_before in (1, 3, 6):
        state = saved_after(WORLDS["dynamic"](make_tasks([[3] * 10, *others], False)), n_before)
        world = WORLDS["dynamic"](make_tasks([lengths, *others], False))
        with pytest.raises(DataError, match="when the state was saved"):
            world.restore(state)


def test_state_in_a_window_of_another_batcher_is_refused():
    def make_world(batcher):
        return BatchWorld(make_teacher([1] * 30, True), WholeListener(), batcher)

    state = saved_after(make_world(Batchsort(2, 4)), 3)
    for batcher in (Batchsort(3, 4), Batchsort(2, 3), Batchsort(8, 1), Words(20, buffer=4)):
        world = make_world(batcher)
        world.restore(state)
        with pytest.raises(DataError, match="other batches than when the state was saved"):
            world.parley()


def test_state_of_a_new_epoch_after_a_restore_skips_nothing():
    world = WORLDS["whole"](make_teacher([1] * 30, True))
    world.restore(saved_after(WORLDS["whole"](make_teacher([1] * 30, True)), 3))
    again = WORLDS["whole"](make_teacher([1] * 30, True))
    again.restore(saved_after(world, 0, epoch=1))
    for each in (world, again):
        heard = []
        while not each.epoch_done():
            heard += [name for name, *_ in record(each)]
        assert sorted(heard) == sorted(f"{number}/0" for number in range(30))


class Counting(Learner):
    """Counts the examples that it learns from. Its replies in training are "yes"."""

    id = "counting"
    n_gathered = 0

    def learn(self, batch):
        self.n_gathered += len(batch)
        return [Message(text="yes")] * len(batch)

    def update(self, optimizer):
        report, self.n_gathered = StepReport(self.n_gathered), 0
        return report


def parley_through(world, each=lambda: None):
    for epoch in range(2):
        world.start_epoch(epoch, 0)
        while not world.epoch_done():
            world.parley()
            each()


@pytest.mark.parametrize("size", [2, 10])
def test_a_loop_without_updates_is_an_error_after_the_first_epoch(size):
    agent = Counting()
    forgetful = BatchWorld(make_teacher([1] * 10, True), agent, Fixed(size))
    with pytest.raises(ProtocolError, match="counting trained on 10 examples, .*update.optimizer."):
        parley_through(forgetful)
    assert agent.n_gathered == 10  # The second epoch was not started.


def test_a_loop_of_one_epoch_without_updates_is_an_error_when_the_world_closes():
    with pytest.raises(ProtocolError, match="never updated"):
        with BatchWorld(make_teacher([1] * 4, True), Counting(), Fixed(2)) as world:
            while not world.epoch_done():
                world.parley()
    assert world.is_shut_down
    with pytest.raises(KeyError):  # The first error is not hidden.
        with BatchWorld(make_teacher([1], True), Counting(), Fixed(2)) as world:
            world.parley()
            raise KeyError


def test_a_loop_that_updates_sometimes_is_no_error():
    agent = Counting()
    n_parleys = 0

    def update_at_times():
        nonlocal n_parleys
        n_parleys += 1
        if n_parleys % 3 == 0:
            agent.update(None)

    with BatchWorld(make_teacher([1] * 8, True), agent, Fixed(2)) as world:
        parley_through(world, update_at_times)
    assert agent.n_gathered == 4  # The last two of eight batches wait.
    with BatchWorld(make_teacher([1] * 8, False), agent, Fixed(2)) as world:
        agent.answer = lambda batch: [Message()] * len(batch)
        parley_through(world)


def test_replies_in_training_are_scored_if_the_teacher_has_metrics():
    teacher = make_teacher([1] * 4, True)
    teacher.set_metrics([Accuracy()])
    world = BatchWorld(teacher, Counting(), Fixed(4))
    world.parley()
    assert [reply["text"] for reply in world.acts[1]] == ["yes"] * 4
    assert world.report()["accuracy"].value() == 0 and world.report()["examples"].value() == 4
