"""Batches that a thread takes ahead: the same ones, states and errors, whoever takes them."""

import json
import threading

import pytest

from tests.examples.talk import answer_batch
from thincdialog.batchers import Batchsort, Fixed, Words
from thincdialog.errors import DataError, ProtocolError
from thincdialog.examples.store import Store
from thincdialog.messages import Message
from thincdialog.mutators.flatten import Flatten
from thincdialog.teachers import IterableTeacher, Teacher, mix_tasks
from thincdialog.teachers.dataset import Dataset

BATCHERS = {
    "fixed": Fixed(4),
    "sorted": Batchsort(4, buffer=3),
    "words": Words(40, buffer=2),
}


class Seen(list):
    """What was prepared ahead, and by whom; and what was handed out."""

    def __init__(self):
        self.handed_out = []

    def __call__(self, batch):
        self.handed_out.append(batch)
        return lambda batch: self.append((batch, threading.current_thread()))


def teacher_of(batcher, streaming=False, n=30, seen=None, name="train"):
    def data():
        return [[(f"{name} {number} " + "w " * (number % 7), "yes")] for number in range(n)]

    return showing(IterableTeacher({"train": data()}, **settings_of(streaming, 12)), batcher, seen)


def mixed(batcher, streaming=False, seen=None):
    sizes = {"a": 9, "b": 20}
    tasks = {name: teacher_of(batcher, streaming, n, name=name) for name, n in sizes.items()}
    return showing(mix_tasks(tasks), batcher, seen)


def settings_of(streaming, window):
    return {"streaming": streaming, "shuffle_window": window, "mutators": [Flatten()]}


def showing(teacher, batcher, seen):
    teacher = teacher if teacher.split else teacher.for_split("train", training=True)
    teacher.set_batches(batcher)
    teacher.prepare_with(seen)
    return teacher


def steps(teacher, epochs, seed=5):
    """Of each batch its ids, and all that is known behind it."""
    for epoch in epochs:
        teacher.start_epoch(epoch, seed)
        yield from rest_of(teacher)


def rest_of(teacher):
    while not teacher.epoch_done():
        yield answer_batch(teacher), json.loads(json.dumps(teacher.state())), teacher.n_examples


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("make", [teacher_of, mixed])
@pytest.mark.parametrize("name", BATCHERS)
def test_windows_ahead_batches_states_and_sizes_are_the_same(name, make, streaming):
    wanted = list(steps(make(BATCHERS[name], streaming), range(3)))
    seen = Seen()
    ahead = make(BATCHERS[name], streaming, seen=seen)
    assert list(steps(ahead, range(3))) == wanted
    # All but the first of each epoch, by one thread that is not this one.
    assert len(seen) == len(wanted) - 3 and all(len(batch) for batch, _ in seen)
    with pytest.raises(ProtocolError, match="past the end of the epoch"):
        ahead.batch_act()
    (thread,) = {thread for _, thread in seen}
    assert thread is not threading.current_thread() and thread.is_alive()
    assert [batch.ids() for batch in seen.handed_out] == [ids for ids, _, _ in wanted]
    ahead.prepare_with(None)
    assert not thread.is_alive()


@pytest.mark.parametrize("name", BATCHERS)
def test_windows_ahead_goes_on_behind_what_was_learnt(name):
    wanted = list(steps(teacher_of(BATCHERS[name]), range(1)))
    for at, (_, state, _) in enumerate(wanted):
        for seen in (None, Seen()):
            other = teacher_of(BATCHERS[name], seen=seen)
            other.start_epoch(3, 1)
            answer_batch(other)  # Another one is taken by now, and dropped.
            other.restore(state)
            assert list(rest_of(other)) == wanted[at + 1 :]
            other.prepare_with(None)


@pytest.mark.parametrize("name", BATCHERS)
def test_windows_ahead_what_was_taken_is_shown_after_the_end(name):
    wanted = list(steps(teacher_of(BATCHERS[name]), range(2)))
    seen = Seen()
    teacher = teacher_of(BATCHERS[name], seen=seen)
    going_on = steps(teacher, range(2))
    found = [next(going_on), next(going_on)]
    for prepare in (None, None, seen):
        teacher.prepare_with(prepare)
        assert json.loads(json.dumps(teacher.state())) == found[-1][1]
    assert [*found, *going_on] == wanted
    # Of the batches that a thread took, this is the last one, until others are set.
    assert len(seen) == 2


def test_windows_ahead_an_epoch_that_is_left_begins_anew():
    seen = Seen()
    teacher = teacher_of(Batchsort(4, buffer=3), seen=seen)
    first = [ids for ids, _, _ in steps(teacher, [0])]
    teacher.start_epoch(0, 5)
    assert answer_batch(teacher) == first[0]
    assert [ids for ids, _, _ in steps(teacher, [0])] == first
    teacher.prepare_with(None)


def test_windows_ahead_errors_come_out_where_the_batch_is_wanted():
    data = [[("hi", "yes")]] * 7 + [[{"labels": ["yes"]}]]
    found, threads = [], Seen()
    for seen in (None, threads):
        teacher = showing(IterableTeacher({"train": data}, **settings_of(True, 1)), Fixed(2), seen)
        teacher.start_epoch(0, 0)
        ids = [answer_batch(teacher) for _ in range(3)]
        with pytest.raises(DataError) as error:
            answer_batch(teacher)
        found.append((ids, str(error.value)))
        teacher.prepare_with(None)
    assert found[0] == found[1] and "episode 7 lacks 'text'" in found[0][1]
    assert len(threads) == 2


def user_stream(called):
    def data():
        for number in range(30):
            called()
            yield [Message(text=f"t{number}", labels=["yes"], id=str(number))]

    return IterableTeacher({"train": data}, **settings_of(True, 4))


def user_iterable(called):
    class Data:
        def __iter__(self):
            for number in range(30):
                called()
                yield [(f"t{number}", "yes")]

    return IterableTeacher({"train": Data()}, **settings_of(True, 4))


def user_mutator(called):
    def mutator(episode):
        called()
        return [episode]

    data = [[(f"t{number}", "yes")] for number in range(30)]
    settings = {"streaming": True, "shuffle_window": 4, "mutators": [Flatten(), mutator]}
    return IterableTeacher({"train": data}, **settings)


def user_numbers(called):
    class Data:
        def __len__(self):
            return 30

        def __getitem__(self, number):
            called()
            return [Message(text=f"t{number}", labels=["yes"])]

    return Teacher({"train": Data()}, streaming=True, single_turn=True, shuffle_window=4)


def user_rows(called):
    class Data(list):
        def __getitem__(self, number):
            called()
            return super().__getitem__(number)

    rows = [(f"t{number}", "yes") for number in range(30)]
    return Dataset(Data(rows), streaming=True)


def user_store(called):
    class Data(Store):
        names, starts = ["id", "text", "labels"], range(31)

        def cells(self, name, rows):
            called()
            given = {"id": "{}".format, "text": "t{}".format, "labels": lambda row: ["yes"]}
            return list(map(given.get(name, lambda row: None), rows.tolist()))

    return Teacher({"train": Data()})


@pytest.mark.parametrize("with_more", [False, True])
@pytest.mark.parametrize(
    "make", [user_stream, user_iterable, user_mutator, user_numbers, user_rows, user_store]
)
def test_windows_ahead_no_code_of_a_user_is_called_by_a_thread(make, with_more):
    """It may hold what is of one thread (a connection to SQLite), or move in a file."""
    callers, seen = set(), Seen()
    teacher = make(lambda: callers.add(threading.current_thread()))
    if with_more:
        tasks = {"own": teacher, "ours": IterableTeacher({"train": [("hi", "yes")]})}
        train = {name: task.for_split("train", training=True) for name, task in tasks.items()}
        teacher = mix_tasks(train)
    teacher = showing(teacher, Words(40, buffer=2), seen)
    ids = {each for of_batch, _, _ in steps(teacher, range(2)) for each in of_batch}
    assert len(ids) >= 30 and not seen and callers == {threading.current_thread()}


def test_windows_ahead_a_thread_that_hangs_keeps_nobody(monkeypatch):
    monkeypatch.setattr("thincdialog.examples.windows_ahead.END_SECONDS", 0.01)
    goes_on, teacher = threading.Event(), teacher_of(Fixed(4))
    teacher.prepare_with(lambda batch: lambda ahead: goes_on.wait())
    teacher.start_epoch(0, 0)
    answer_batch(teacher)
    state = teacher.state()
    teacher.prepare_with(None)
    goes_on.set()
    other = teacher_of(Fixed(4))
    other.restore(state)
    assert len(list(rest_of(other))) == 7
