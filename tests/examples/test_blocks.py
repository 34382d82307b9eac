"""Data that is read in tasks is the same as data that is read in one go: orders, blocks, shards,
states and errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.talk import batches_left, cases, rounds, through_json
from tests.examples.test_reading import MESSAGES, ahead, everything, small_tasks  # noqa: F401
from tests.examples.test_split import CASES, Files, sizes, slowly
from tests.processes import slow
from thincdialog.batchers import Fixed, Words
from thincdialog.errors import DataError
from thincdialog.examples import split
from thincdialog.examples.store_writer import StoreWriter
from thincdialog.messages import Message
from thincdialog.teachers import Teacher
from thincdialog.teachers.text_formats import Conversations


@pytest.mark.parametrize("name", CASES)
@given(
    parts=st.lists(sizes, min_size=1, max_size=3),
    window=st.integers(1, 9),
    n_rounds=st.integers(0, 25),
    flat=st.booleans(),
    pack=st.booleans(),
    alone=st.booleans(),
)
@slowly
def test_blocks_are_the_same_with_tasks_and_resume_each_other(
    tmp_path, name, parts, window, n_rounds, flat, pack, alone
):
    if name == "jsonl, a part":
        parts = [[4] * 12] * len(parts)
    files = Files(tmp_path, name, parts, pack)
    teachers = [files.teacher(flat, window), ahead(files.teacher(flat, window))]
    for teacher in teachers:
        teacher.start_epoch(1, 5)
        rounds([teacher], n_rounds)
    state = through_json(teachers[alone].state())
    expected = everything(teachers[0])
    assert everything(teachers[1]) == expected
    teachers = [files.teacher(flat, window), ahead(files.teacher(flat, window))]
    for teacher in teachers:
        teacher.restore(state)
        assert everything(teacher) == expected


@pytest.mark.slow
@given(case=cases(), n_batches=st.integers(0, 9), budget=st.integers(0, 20))
@slowly
def test_blocks_batches_of_mixtures_are_the_same_with_tasks(case, n_batches, budget):
    shown = []
    for prepare in (lambda teacher: teacher, ahead):
        teacher = prepare(case.make())
        if not case.is_flat:
            shown.append(rounds([teacher.clone() for _ in range(3)]))
            continue
        teacher.set_batches(Words(budget + 20, buffer=2) if budget else Fixed(3))
        teacher.start_epoch(1, 5)
        shown.append(batches_left(teacher))
    assert shown[0] == shown[1]


def shards(teacher, start=None):
    return [
        (
            [
                list(block.store.starts),
                [dict(block.store.message(row)) for row in range(block.store.n_examples)],
            ],
            block.end,
        )
        for block in teacher.data["train"].shards(start)
    ]


@pytest.mark.parametrize(
    "name", [slow("csv"), "conversations", slow("fbdialog"), slow("layout of groups")]
)
@given(
    parts=st.lists(sizes, min_size=1, max_size=3),
    size=st.integers(1, 9),
    flat=st.booleans(),
)
@slowly
def test_blocks_shards_are_the_same_with_tasks_and_resume_each_other(
    tmp_path, name, parts, size, flat
):
    files = Files(tmp_path, name, parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "SHARD_SIZE", size)
        alone, helped = files.teacher(flat), ahead(files.teacher(flat))
        expected = shards(alone)
        found = shards(helped)
        assert [shown for shown, _ in found] == [shown for shown, _ in expected]
        for made, teacher in ((expected, helped), (found, alone)):
            for number, (_, start) in enumerate(made):
                rest = shards(teacher, through_json(start))
                wanted = [shown for shown, _ in expected[number + 1 :]]
                assert [shown for shown, _ in rest] == wanted


@given(
    episodes=st.lists(st.lists(MESSAGES, min_size=1, max_size=3), min_size=1, max_size=9),
    size=st.integers(1, 5),
)
@slowly
def test_blocks_stores_have_the_same_bytes_with_tasks(tmp_path, episodes, size):
    def source():
        return [[Message(message) for message in episode] for episode in episodes]

    stored = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "SHARD_SIZE", size)
        for name, prepare in (("alone", lambda teacher: teacher), ("helped", ahead)):
            made = prepare(Teacher({"train": source}, streaming=True))
            writer = StoreWriter(tmp_path / name, None)
            for block in made.data["train"].shards(None):
                writer.add(block.store, block.end)
            writer.finish({})
            stored.append({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()})
    assert stored[0] == stored[1]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{}\n", b'{"turns": []}\n', b"hello\tyou\n"])
def test_blocks_error_of_data_without_examples_is_the_same_with_tasks(tmp_path, content):
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    messages = []
    for prepare in (lambda teacher: teacher, ahead):
        for streaming in (True, False):
            made = Conversations(str(path), streaming=streaming)
            with pytest.raises(DataError) as caught:
                rounds([prepare(made.for_split("train", training=True))])
            messages.append(str(caught.value))
    assert len(set(messages)) == 1
