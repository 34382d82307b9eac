"""DynamicBatchWorld shows each example once, keeps conversations whole, and fills its batches."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import compounding

from tests.worlds.talkers import (
    BATCHERS,
    BatchListener,
    Listener,
    TruncatingListener,
    WholeListener,
    WholeTruncatingListener,
    expected_conversations,
    expected_of_tasks,
    make_batcher,
    make_tasks,
    make_teacher,
    make_wordy,
    run_epoch,
    scored,
)
from thincdialog.batchers import Batchsort, Fixed, Lengths, Padded, Words
from thincdialog.errors import ConfigError, DataError
from thincdialog.metrics import report_values
from thincdialog.teachers import mix_tasks
from thincdialog.worlds import BatchWorld, DynamicBatchWorld, PartnerWorld

episode_lengths = st.lists(st.integers(1, 5), min_size=1, max_size=30)
buffers = st.integers(1, 40)
wordy = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), min_size=1, max_size=4),
    min_size=1,
    max_size=40,
)


def batches_of(world, epoch=0, seed=0):
    """Run an epoch and return the ids of each batch."""
    batches = []
    world.start_epoch(epoch, seed)
    while not world.epoch_done():
        world.parley()
        batches.append([message["id"] for message in world.acts[0]])
    return batches


@pytest.mark.parametrize("make_world", [DynamicBatchWorld, BatchWorld])
@pytest.mark.parametrize("kind", BATCHERS)
@given(
    tasks=st.lists(episode_lengths, min_size=1, max_size=3),
    size=st.integers(1, 12),
    buffer=buffers,
    agent_kind=st.sampled_from([Listener, BatchListener, WholeListener, TruncatingListener]),
    training=st.booleans(),
    streaming=st.booleans(),
    window=st.integers(1, 30),
    seed=st.integers(-9, 99),
)
def test_dynamic_batch_world_every_example_once_and_in_its_conversation(
    make_world, kind, tasks, size, buffer, agent_kind, training, streaming, window, seed
):
    agent = agent_kind()
    teacher = make_tasks(tasks, training, streaming=streaming, shuffle_window=window)
    world = make_world(teacher, agent, make_batcher(kind, size, buffer))
    expected = expected_of_tasks(tasks)
    for epoch in range(2):
        agent.heard.clear()
        agent.conversations.clear()
        run_epoch(world, epoch, seed)
        assert Counter(agent.heard) == Counter(name for turns in expected for name in turns)
        assert sorted(agent.conversations) == sorted(expected)
    assert report_values(world.report())["examples"] == 2 * sum(map(sum, tasks))


@pytest.mark.parametrize("kind", BATCHERS)
@given(
    tasks=st.lists(episode_lengths, min_size=1, max_size=2), size=st.integers(1, 12), buffer=buffers
)
def test_evaluation_is_the_same_for_all_worlds_and_batchers(kind, tasks, size, buffer):
    partner = PartnerWorld(scored(make_tasks(tasks, False)), Listener())
    run_epoch(partner)
    expected = report_values(partner.report())
    batcher = make_batcher(kind, size, buffer)
    for agent in (Listener(), BatchListener(), WholeListener()):
        for make_world in (DynamicBatchWorld, BatchWorld):
            world = make_world(scored(make_tasks(tasks, False)), agent, batcher)
            run_epoch(world)
            assert report_values(world.report()) == expected


@pytest.mark.parametrize("make_batcher", [Words, Padded])
@given(words=wordy, budget=st.integers(20, 150), buffer=buffers)
def test_dynamic_batch_world_budget_holds_except_for_single_rows(
    make_batcher, words, budget, buffer
):
    for oversize in ("alone", "truncate"):
        agent = TruncatingListener()
        teacher = make_wordy(words, training=True)
        batcher = make_batcher(budget, buffer=buffer, oversize=oversize)
        world = DynamicBatchWorld(teacher, agent, batcher)
        run_epoch(world)
        assert sum(map(len, agent.rows)) == sum(map(len, words))
        for rows in agent.rows:
            if oversize == "alone" and len(rows) == 1:
                continue
            assert Lengths(rows, (True, True)).cells() <= budget


def test_dynamic_batch_world_falling_budget_holds_for_rows_that_waited():
    words = [[(5 * number % 43 + 1, number % 7)] * (1 + number % 2) for number in range(80)]
    agent = TruncatingListener()
    batcher = Words(compounding(120, 20, 0.98), buffer=10, oversize="truncate")
    run_epoch(DynamicBatchWorld(make_wordy(words, training=True), agent, batcher))
    assert sum(map(len, agent.rows)) == sum(map(len, words))
    cells = [Lengths(rows, (True, True)).cells() for rows in agent.rows]
    assert all(n_cells <= batcher.sizes.at(step) for step, n_cells in enumerate(cells))
    assert batcher.sizes.at(len(cells)) < 43


@given(words=wordy, size=st.integers(1, 12), buffer=buffers)
def test_dynamic_batch_world_measures_each_message_once(words, size, buffer):
    agent = TruncatingListener()
    world = DynamicBatchWorld(make_wordy(words, True), agent, Batchsort(size, buffer))
    run_epoch(world)
    assert set(agent.n_measured.values()) == {1}
    assert len(agent.n_measured) == sum(map(len, words))


def test_dynamic_batch_world_batches_have_similar_lengths_in_random_order():
    rng = np.random.default_rng(0)
    words = [[(int(n), 1)] for n in rng.integers(1, 60, 8000)]
    agent = TruncatingListener()
    run_epoch(DynamicBatchWorld(make_wordy(words, True), agent, Batchsort(8)))
    assert max(np.ptp(rows[:, 0]) for rows in agent.rows) <= 2
    means = [rows[:, 0].mean() for rows in agent.rows]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.25
    # Texts in the first half of the epoch are neither shorter nor longer.
    half = np.concatenate(agent.rows[: len(agent.rows) // 2])[:, 0].mean()
    assert abs(half / np.mean([n for ((n, _),) in words]) - 1) < 0.05


@pytest.mark.parametrize("unit", ["episodes", "examples"])
def test_dynamic_batch_world_copies_change_tasks_and_task_weights_hold(unit):
    class Tasks(BatchListener):
        """Records the tasks of each copy, of each batch, and of each episode or example."""

        of_copies = []

        def __init__(self):
            super().__init__()
            self.counts, self.begun = [], []

        def observe(self, message):
            task, _, turn = message["id"].split("/")
            self.known.add(task)
            if turn == "0" or unit == "examples":
                self.begun.append(task)
            return super().observe(message)

        def batch_act(self, observations):
            self.counts.append(Counter(message["id"][0] for message in observations))
            return super().batch_act(observations)

        def reset(self):
            super().reset()
            self.known = set()
            self.of_copies.append(self.known)

    tasks = [[1] * 4000, [4] * 1000, [2, 3] * 800]
    teacher = make_tasks(tasks, True, weights=[2, 1, 1], unit=unit, repeat=True)
    agent = Tasks()
    world = DynamicBatchWorld(teacher, agent, Batchsort(8, 16))
    world.start_epoch(0, 0)
    for _ in range(800):
        world.parley()
    # Unlike in ParlAI, copies do not keep the same task for ever.
    copies = [known for known in agent.of_copies if known]
    assert len(copies) == 8 * 16
    assert sum(len(known) == 3 for known in copies) > 0.9 * len(copies)
    begun = Counter(agent.begun)
    assert begun["a"] / len(agent.begun) == pytest.approx(0.5, abs=0.03)
    assert begun["b"] / len(agent.begun) == pytest.approx(0.25, abs=0.03)
    # Batches contain several tasks.
    assert sum(len(counts) > 1 for counts in agent.counts) > 0.9 * len(agent.counts)


@pytest.mark.parametrize("kind", BATCHERS)
def test_epoch_ends_with_the_finite_tasks(kind):
    tasks = {
        "finite": make_teacher([2, 1, 3], True),
        "endless": make_teacher([1, 2], True, streaming=True, endless=True),
    }
    agent = BatchListener()
    teacher = mix_tasks(tasks, weights={"finite": 1, "endless": 3})
    world = BatchWorld(teacher, agent, make_batcher(kind, 2, 2))
    for epoch in range(2):
        agent.heard.clear()
        run_epoch(world, epoch)
        counts = Counter(agent.heard)
        finite = {name: count for name, count in counts.items() if name.startswith("finite/")}
        expected = expected_conversations([2, 1, 3], "finite/")
        assert finite == {name: 1 for turns in expected for name in turns}
        assert 12 <= sum(counts.values()) - 6 <= 24


def test_dynamic_batch_world_order_depends_on_seed_and_epoch_only():
    words = [[(n % 17, n % 5)] * (1 + n % 3) for n in range(60)]

    def order(seed, epoch=0):
        world = DynamicBatchWorld(make_wordy(words, True), BatchListener(), Batchsort(4, 3))
        return batches_of(world, epoch, seed)

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1) != order(1, epoch=1)
    # An epoch does not depend on earlier epochs.
    world = DynamicBatchWorld(make_wordy(words, True), BatchListener(), Batchsort(4, 3))
    run_epoch(world, 0, 7)
    world.start_epoch(5, 7)
    world.parley()
    assert batches_of(world, 0, 1) == order(1)


@given(size=st.integers(1, 9), lengths=episode_lengths)
def test_fixed_and_scheduled_sizes_are_followed(size, lengths):
    schedule = [int(n) for n, _ in zip(compounding(2.0, 9.0, 1.3), range(200))]
    for kind in (BatchListener, WholeListener):
        agent = kind()
        teacher = make_teacher([1] * sum(lengths), True)
        world = BatchWorld(teacher, agent, Fixed(compounding(2.0, 9.0, 1.3)))
        assert isinstance(world, BatchWorld)
        run_epoch(world)
        run_epoch(world, 1)
        # The schedule continues in the next epoch. The last batch of an epoch has the remaining
        # rows.
        n_left = sum(lengths)
        for batch, wanted in zip(agent.batches, schedule):
            assert batch == min(wanted, n_left)
            n_left = n_left - batch or sum(lengths)
    agent = BatchListener()
    falling = iter([9, 5, 2, *[2] * 1000])
    run_epoch(BatchWorld(make_teacher(lengths, True), agent, Fixed(falling)))
    assert sum(agent.batches) == sum(lengths)
    assert all(n <= most for n, most in zip(agent.batches, [9, 5, *[2] * 1000]))


def test_batch_world_has_whole_batches_where_data_and_agent_allow_them():
    single, several = make_teacher([1, 1], True), make_teacher([1, 2], True)
    for teacher, agent, has_whole_batches in (
        (single, WholeListener(), True),
        (single, BatchListener(), False),
        (several, WholeListener(), False),
    ):
        for batcher in (Batchsort(2), Fixed(2)):
            world = BatchWorld(teacher, agent, batcher)
            assert world.has_whole_batches is has_whole_batches


@pytest.mark.parametrize("make_world", [DynamicBatchWorld, BatchWorld])
def test_oversize_rows(make_world):
    words = [[(3, 1)], [(40, 2)], [(5, 1)]]

    for kind in (TruncatingListener, WholeTruncatingListener):
        world = make_world(make_wordy(words, True), kind(), Words(20, oversize="error"))
        with pytest.raises(
            DataError, match=r"example .1/0. has 42 words.* holds 20: raise .*budget"
        ):
            run_epoch(world)
        agent = kind()
        run_epoch(make_world(make_wordy(words, True), agent, Words(20, oversize="truncate")))
        read = sorted(row for rows in agent.rows for row in rows.tolist())
        assert read == [[3, 1], [5, 1], [18, 2]]
        with pytest.raises(ConfigError, match='oversize = "truncate".*"alone" or "error"'):
            make_world(make_wordy(words, True), BatchListener(), Words(20, oversize="truncate"))


def test_dynamic_batch_world_keeps_no_rows_waiting_at_the_end_of_the_data():
    world = DynamicBatchWorld(make_teacher([1] * 60, True), BatchListener(), Batchsort(2, 16))
    world.start_epoch(0, 0)
    rounds, n_chosen = [], 0
    while not world.epoch_done():
        is_over = world.teacher.epoch_done()
        world.parley()
        state = world.buffer.state()
        if not n_chosen:
            rounds.append((is_over, bool(state["waiting"])))
        n_chosen = len(state["chosen"])
    # While more rows can come, some wait for rows of a similar length.
    assert rounds == [(False, True)] * (len(rounds) - 1) + [(True, False)]
    assert len(rounds) > 2


@pytest.mark.parametrize("batcher", [Batchsort(2, 2), Fixed(2)])
def test_batch_world_epoch_can_be_left_in_the_middle(batcher):
    agent = BatchListener()
    world = BatchWorld(make_teacher([3, 3, 3, 2], True), agent, batcher)
    world.start_epoch(0, 0)
    world.parley()
    world.parley()
    agent.heard.clear()
    agent.conversations.clear()
    run_epoch(world, epoch=1)
    assert sorted(agent.conversations) == sorted(expected_conversations([3, 3, 3, 2]))
    assert len(agent.heard) == 11
