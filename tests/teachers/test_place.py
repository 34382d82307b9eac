"""Where a teacher and its copies are can be saved, and taken up again in the same order."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.teachers.talk import episodes, make_teacher, rounds
from thincdialog.errors import DataError, ProtocolError
from thincdialog.messages import Message
from thincdialog.teachers import IterableTeacher

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=25)


def through_json(value):
    return json.loads(json.dumps(value))


@given(
    sizes, st.integers(1, 9), st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 30)
)
def test_place_copies_in_the_middle_of_episodes_go_on(
    sizes, n_copies, window, streaming, training, n_rounds
):
    choices = {"window": window, "streaming": streaming, "training": training}
    original = make_teacher(sizes, **choices)
    original.start_epoch(2, 5)
    copies = [original.clone() for _ in range(n_copies)]
    rounds(original, copies, n_rounds)
    state, places = through_json([original.state(), [copy.place() for copy in copies]])
    resumed = make_teacher(sizes, **choices)
    resumed_copies = resumed.restore(state, places)
    assert [copy.place() for copy in resumed_copies] == places
    expected = rounds(original, copies)
    assert rounds(resumed, resumed_copies) == expected
    assert resumed.epoch_done()


def test_place_of_a_teacher_that_acts_itself():
    original = make_teacher([3, 2, 4])
    first = rounds(original, [original], 2)
    resumed = make_teacher([3, 2, 4])
    resumed.restore(through_json(original.state()))
    rest = rounds(resumed, [resumed])
    assert rest == rounds(original, [original]) and len(first + rest) == 9


def test_place_a_stream_is_read_once_for_all_places():
    n_reads = []

    def source():
        n_reads.append(0)
        for episode in episodes([4] * 30):
            n_reads[-1] += 1
            yield episode

    def make():
        made = IterableTeacher({"train": source}, streaming=True, shuffle_window=3)
        return made.for_split("train", training=True)

    original = make()
    copies = [original.clone() for _ in range(9)]
    rounds(original, copies[:4], 2)
    rounds(original, copies[4:], 2)
    state, places = original.state(), [copy.place() for copy in copies]
    assert len({place["block"] for place in places}) == 3
    n_reads.clear()
    resumed = make()
    again = resumed.restore(state, places)
    assert n_reads == [9]
    assert rounds(resumed, again) == rounds(original, copies)


def test_place_between_an_act_and_its_reply_is_none():
    original = make_teacher([2, 2])
    copy = original.clone()
    assert copy.place() is None
    copy.act()
    with pytest.raises(ProtocolError, match=r"the reply to act\(\) must come before"):
        copy.place()


@given(sizes, st.booleans(), st.integers(0, 9))
def test_place_of_acts_without_a_reply_are_said_again(sizes, streaming, n_rounds):
    original = make_teacher(sizes, streaming=streaming)
    copies = [original.clone() for _ in range(3)]
    assert copies[0].place_of_act() is None
    rounds(original, copies, n_rounds)
    acts = [(copy, copy.act()) for copy in copies if not copy.epoch_done()]
    waiting, said = [copy for copy, _ in acts], [message for _, message in acts]
    places = through_json([copy.place_of_act() for copy in waiting])
    resumed = make_teacher(sizes, streaming=streaming)
    again = resumed.restore(through_json(original.state()), places)
    assert [copy.act() for copy in again] == said
    for copy in [*waiting, *again]:
        copy.observe(Message())
    assert rounds(resumed, again) == rounds(original, waiting)


def test_place_in_an_epoch_that_is_over():
    original = make_teacher([2, 1])
    rounds(original, [original])
    resumed = make_teacher([2, 1])
    resumed.restore(through_json(original.state()))
    assert resumed.epoch_done()
    resumed.start_epoch(1, 0)
    assert len(rounds(resumed, [resumed])) == 3


@pytest.mark.parametrize("streaming", [False, True])
def test_place_in_other_data_is_an_error(streaming):
    original = make_teacher([1] * 20, streaming=streaming)
    rounds(original, [original], 17)
    state = through_json(original.state())
    with pytest.raises(DataError, match="task/train .*not what it was when the state was saved"):
        make_teacher([1] * 5, streaming=streaming).restore(state)


def test_place_in_an_endless_stream():
    choices = {"endless": True, "window": 2}
    original = make_teacher([1, 3, 2], **choices)
    copies = [original.clone() for _ in range(3)]
    rounds(original, copies, 7)
    state, places = through_json([original.state(), [copy.place() for copy in copies]])
    assert state["shown"]["again"] > 0
    resumed = make_teacher([1, 3, 2], **choices)
    resumed_copies = resumed.restore(state, places)
    assert rounds(resumed, resumed_copies, 20) == rounds(original, copies, 20)
