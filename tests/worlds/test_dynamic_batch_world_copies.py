"""Batching worlds ask agents for lengths, refuse invalid ones, and run copies of other worlds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.talkers import (
    BATCHERS,
    BatchListener,
    WholeListener,
    make_batcher,
    make_teacher,
    scored,
)
from thincdialog.batchers import Batchsort, Fixed, Lengths, Padded, Words
from thincdialog.contract import CodeError
from thincdialog.errors import ConfigError, ProtocolError
from thincdialog.messages import Message
from thincdialog.protocol import Agent
from thincdialog.worlds import (
    BatchWorld,
    DynamicBatchWorld,
    MultiAgentWorld,
    PartnerWorld,
)

WRONG = {
    "one dimension": lambda n: Lengths(np.ones(n, dtype=np.int64), (True,)),
    "no Lengths": lambda n: np.ones((n, 2), dtype=np.int64),
    "nothing": lambda n: None,
    "a list": lambda n: Lengths([[1, 1]] * n, (True, True)),
    "a row too few": lambda n: Lengths(np.ones((n - 1, 2), dtype=np.int64), (True, True)),
    "a bool too few": lambda n: Lengths(np.ones((n, 2), dtype=np.int64), (True,)),
    "no field": lambda n: Lengths(np.ones((n, 0), dtype=np.int64), ()),
    "fractions": lambda n: Lengths(np.full((n, 2), 2.5), (True, True)),
    "less than none": lambda n: Lengths(np.full((n, 2), -1), (True, True)),
}


class Measuring(WholeListener):
    """Returns the lengths that it was given."""

    def __init__(self, lengths):
        super().__init__()
        self.lengths = lengths

    def batch_lengths(self, observations):
        return self.lengths(len(observations))


def run(make_world, lengths, batcher):
    world = make_world(make_teacher([1] * 20, True), Measuring(lengths), batcher)
    n_heard = 0
    while not world.epoch_done():
        world.parley()
        n_heard += len(world.acts[0])
    return n_heard


@pytest.mark.parametrize("make_world", [BatchWorld, DynamicBatchWorld])
@pytest.mark.parametrize("wrong", WRONG)
def test_batching_world_invalid_lengths_of_an_agent_are_explained(wrong, make_world):
    for batcher in (Words(10, buffer=2), Padded(10, buffer=2), Batchsort(3, buffer=2)):
        with pytest.raises(CodeError, match=r"batch_lengths\(\) returned .* return Lengths"):
            run(make_world, WRONG[wrong], batcher)


@pytest.mark.parametrize("make_world", [BatchWorld, DynamicBatchWorld])
def test_batching_world_takes_any_kind_of_whole_numbers(make_world):
    def lengths(n_rows):
        return Lengths(np.ones((n_rows, 2), dtype=np.uint8), [True, False])

    for batcher in (Words(10, buffer=2), Padded(10, buffer=2), Batchsort(3, buffer=2)):
        assert run(make_world, lengths, batcher) == 20


def test_batching_world_truncation_error_names_both_batchers_of_a_config():
    with pytest.raises(ConfigError) as caught:
        BatchWorld(make_teacher([1], False), WholeListener(), Words(9, oversize="truncate"))
    assert "agent cannot shorten what it reads" in str(caught.value)
    assert "[world.batcher] (or [evaluation.world.batcher])" in str(caught.value)


def test_batching_world_conversations_without_room_go_first_in_the_next_batch():
    sizes = itertools.chain([6], itertools.repeat(2))
    world = BatchWorld(make_teacher([3] * 30, True), BatchListener(), Fixed(sizes))
    world.start_epoch(0, 0)
    said = []
    while not world.epoch_done():
        world.parley()
        said += [message["id"] for message in world.acts[0]]
    place = {name: number for number, name in enumerate(said)}
    pairs = itertools.product(range(30), (0, 1))
    waits = [place[f"{n}/{turn + 1}"] - place[f"{n}/{turn}"] for n, turn in pairs]
    # Six conversations take turns, two at a time.
    assert len(said) == 90 and max(waits) == 6


# --- copies of worlds ---------------------------------------------------------------------------


class Bystander(Agent):
    """Speaks after each reply. At the end of an episode, each copy adds the messages that it
    observed, as (speaker, text), to ``conversations``."""

    def __init__(self, id, answers_together):
        self.id, self.use_batch_act = id, answers_together
        self.conversations, self.heard, self.batches = [], [], []

    def observe(self, message):
        super().observe(message)
        self.heard = [*self.heard, (message["agent"], message["text"])]
        if message["agent"] == "task":
            self.is_over = message["episode_done"]
        return Message(message, heard=self.heard)

    def batch_act(self, observations):
        self.batches.append(len(observations))
        return [Message(text=f"{self.id} heard {len(each['heard'])}") for each in observations]

    def act(self):
        return Message(text=f"{self.id} heard {len(self.heard)}")

    def self_observe(self, message):
        super().self_observe(message)
        if self.is_over:
            self.conversations.append(self.heard)

    def reset(self):
        super().reset()
        self.heard = []


def three(lengths, training, answers_together=True, agent_kind=BatchListener):
    teacher = scored(make_teacher(lengths, training))
    return MultiAgentWorld([teacher, agent_kind(), Bystander("third", answers_together)])


def heard_by_all(world):
    """Run an epoch. Return the scores, and the messages that both agents observed, by
    conversation."""
    world.start_epoch(2, 7)
    while not world.epoch_done():
        world.parley()
    _, agent, third = world.agents
    return world.report(), sorted(agent.conversations), sorted(third.conversations)


class FirstTurns(BatchListener):
    """Observes only messages of the teacher."""

    def observe(self, message):
        return super().observe(message) if message["agent"] == "task" else message


@pytest.mark.parametrize("kind", BATCHERS)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    size=st.integers(1, 6),
    training=st.booleans(),
    answers_together=st.booleans(),
)
def test_batching_world_copies_of_a_world_of_three_gives_the_same(
    kind, lengths, size, training, answers_together
):
    one_by_one = heard_by_all(three(lengths, training, answers_together, FirstTurns))
    for make_world in (BatchWorld, DynamicBatchWorld):
        world = three(lengths, training, answers_together, FirstTurns)
        batched = make_world(world, make_batcher(kind, size, 4))
        assert heard_by_all(batched) == one_by_one


def test_batching_world_copies_of_a_world_of_three_answers_together():
    world = BatchWorld(three([1] * 10, False, agent_kind=FirstTurns), Fixed(4))
    world.parley()
    teacher, agent, third = world.agents
    assert [len(acts) for acts in world.acts] == [4, 4, 4]
    assert world.display(1).splitlines()[3] == "   [third]: third heard 2"
    with pytest.raises(
        ProtocolError, match=r"BatchWorld.state\(\).*cannot be saved during an epoch"
    ):
        world.state()
    while not world.epoch_done():
        world.parley()
    assert agent.batches == third.batches == [4, 4, 2]
    assert third.conversations[0] == [("task", "say 0 0"), ("agent", "0/0")]


class Counting(PartnerWorld):
    """Counts the parleys of each copy; ``partner`` is its agent."""

    def __init__(self, teacher, agent):
        super().__init__(teacher, agent)
        self.partner, self.all, self.mine = agent, [], 0

    def clone(self):
        self.all.append(super().clone())
        return self.all[-1]

    def parley_init(self):
        self.mine += 1
        assert self.partner is self.agents[1]


@pytest.mark.parametrize("make_world", [BatchWorld, DynamicBatchWorld])
def test_batching_world_calls_parley_init_of_each_copy(make_world):
    world = Counting(make_teacher([3, 1, 2], False), WholeListener())
    batched = make_world(world, batcher=Fixed(3))
    while not batched.epoch_done():
        batched.parley()
    assert sorted(copy.mine for copy in world.all) == [1, 2, 3] and world.mine == 0


def test_batching_world_copies_have_the_attributes_that_share_returns():
    class Numbered(PartnerWorld):
        def share(self):
            return {**super().share(), "number": 7}

    copy = Numbered(make_teacher([1], False), Bystander("third", True)).clone()
    assert copy.number == 7 and copy.agents[1].heard == []


class Silent(PartnerWorld):
    def _parley(self):
        self.teacher.observe(Message(self.teacher.act(), text=""))


@pytest.mark.parametrize("make_world", [BatchWorld, DynamicBatchWorld])
def test_batching_world_refuses_worlds_whose_copies_it_cannot_run(make_world):
    teacher = make_teacher([1], False)
    for world in (
        Silent(teacher, BatchListener()),
        MultiAgentWorld([BatchListener(), teacher]),
        BatchWorld(teacher, BatchListener(), Fixed(2)),
    ):
        with pytest.raises(ProtocolError, match=r"cannot run copies of this .* needs a Partner"):
            make_world(world, Fixed(2))
        with pytest.raises(TypeError, match="World needs a batcher, such as Fixed"):
            make_world(world)
