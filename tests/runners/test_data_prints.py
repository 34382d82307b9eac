"""Fingerprints that show whether two processes read the same data."""

import itertools
import json

from thincdialog.api import IterableTeacher, Message
from thincdialog.runners.data_prints import N_FIRST, data_prints
from thincdialog.teachers.text_formats import LabelledText


def stream(yes="yes", since=0, **options):
    """Return a teacher of endless numbered episodes, and a list of the numbers that were read."""
    read = []

    def episodes():
        for number in itertools.count():
            read.append(number)
            label = yes if number >= since else "yes"
            yield [{"text": f"say {number}", "labels": [label]}, {"text": "", "labels": ["no"]}]

    teacher = IterableTeacher({"train": episodes}, endless=True, **options)
    return teacher.for_split("train", training=True), read


def test_data_prints_compare_the_start_of_a_stream_and_keep_its_position():
    teacher, read = stream(shuffle_window=2)
    teacher.start_epoch(0, 0)
    for _ in range(3):
        teacher.act()
        teacher.observe(Message(agent="me", text="yes"))
    state, n_read = teacher.state(), len(read)
    prints = data_prints(teacher)
    assert list(prints) == [""] and read[n_read:] == list(range(N_FIRST))
    assert teacher.state() == state

    assert data_prints(stream()[0]) == prints
    assert data_prints(stream("maybe", since=N_FIRST)[0]) == prints
    assert data_prints(stream("maybe", since=N_FIRST - 1)[0]) != prints


def test_data_prints_compare_all_of_a_streams_files(tmp_path):
    path = tmp_path / "large.jsonl"
    rows = [{"text": f"say {n}", "label": "yes", "note": "x" * 20_000} for n in range(400)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    task = LabelledText(train=str(path), streaming=True).for_split("train", training=True)
    before = data_prints(task)
    assert data_prints(task) == before
    # Change a byte after the first episodes.
    content = bytearray(path.read_bytes())
    content[-100_000] ^= 1
    path.write_bytes(content)
    assert data_prints(task) != before
