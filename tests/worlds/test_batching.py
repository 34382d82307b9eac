"""What batching worlds ask of an agent, and what they say to one that gives it not."""

import itertools

import numpy as np
import pytest

from tests.worlds.talkers import BatchListener, WholeListener, make_teacher
from thincdialog.batchers import Batchsort, Fixed, Lengths, Padded, Words
from thincdialog.errors import ConfigError, ProtocolError
from thincdialog.worlds import BatchWorld, DynamicBatchWorld, batch_world

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
    """Gives such lengths."""

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


@pytest.mark.parametrize("make_world", [batch_world, DynamicBatchWorld])
@pytest.mark.parametrize("wrong", WRONG)
def test_batching_lengths_that_an_agent_gives_wrongly_are_explained(wrong, make_world):
    for batcher in (Words(10, buffer=2), Padded(10, buffer=2), Batchsort(3, buffer=2)):
        with pytest.raises(ProtocolError, match=r"agent.batch_lengths\(\) must give Lengths"):
            run(make_world, WRONG[wrong], batcher)


def test_batching_lengths_of_other_fields_than_before_are_explained():
    n_fields = iter([2, 1])

    def lengths(n_rows):
        fields = (True,) * next(n_fields, 1)
        return Lengths(np.ones((n_rows, len(fields)), dtype=np.int32), fields)

    with pytest.raises(ProtocolError, match="always the same ones"):
        run(DynamicBatchWorld, lengths, Batchsort(3, buffer=2))


@pytest.mark.parametrize("make_world", [batch_world, DynamicBatchWorld])
def test_batching_takes_any_kind_of_whole_numbers(make_world):
    def lengths(n_rows):
        return Lengths(np.ones((n_rows, 2), dtype=np.uint8), [True, False])

    for batcher in (Words(10, buffer=2), Padded(10, buffer=2), Batchsort(3, buffer=2)):
        assert run(make_world, lengths, batcher) == 20


def test_batching_truncation_is_refused_for_either_batcher_of_a_config():
    with pytest.raises(ConfigError) as caught:
        batch_world(make_teacher([1], False), WholeListener(), Words(9, oversize="truncate"))
    assert "agent cannot shorten what it reads" in str(caught.value)
    assert "[world.batcher] (or [evaluation.world.batcher])" in str(caught.value)


def test_batching_conversations_without_room_go_first_in_the_next_batch():
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
    # Six take turns, two at a time.
    assert len(said) == 90 and max(waits) == 6
