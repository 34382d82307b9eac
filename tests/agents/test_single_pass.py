"""A survey and the use of all texts read a stream once. The texts are those of a separate pass."""

import signal
import time
from collections import Counter
from functools import partial
from threading import Event

import pytest

from thincdialog.agents.single_pass import surveyed
from thincdialog.examples import split as examples_split
from thincdialog.messages import Message
from thincdialog.teachers import Teacher, mix_tasks


@pytest.fixture(autouse=True)
def small_beginning(monkeypatch):
    monkeypatch.setattr(examples_split, "BEGINNING", 10)


def make(begun, streaming):
    """Return a training teacher of tasks of four blocks, streamed or held."""

    def rows(task):
        begun[task] += 1
        for number in range(100):
            fields = {"text": f"{task}{number}", "labels": [f"{number % 7}"]}
            yield [Message(fields, system=f"{number // 60}")]

    shown = {}
    for task, streams in zip("abc", streaming):
        options = {"shuffle_window": 30, "text_fields": ("system", "text", "labels")}
        made = Teacher({"train": partial(rows, task)}, streaming=streams, **options)
        shown[task] = made.for_split("train", training=True)
    return mix_tasks(shown)


def read_first(train):
    next(train.examples())


def read_last_task_first(train):
    for task in reversed(train.by_task().values()):
        list(task.examples())


STREAMING = pytest.mark.parametrize("streaming", [[1], [1, 1], [0, 1], [1, 0, 1], [0, 0]])


def texts_used(survey, train):
    """Return the texts of the last use, because texts may be used again from the beginning."""
    used = []

    def use(texts):
        used[:] = texts

    surveyed(survey, train, use)()
    return used


@STREAMING
@pytest.mark.parametrize(
    "survey, n_passes",
    [
        (lambda train: list(train.examples()), 1),
        (lambda train: list(train.all_labels()), 1),
        (lambda train: None, 1),
        (lambda train: [*train.examples(), *train.all_labels()], 2),
    ],
)
def test_surveyed_reads_streams_once_if_the_survey_does(streaming, survey, n_passes):
    begun, expected = Counter(), list(make(Counter(), streaming).texts())
    assert texts_used(survey, make(begun, streaming)) == expected
    assert expected.count("0") > len(streaming)  # System texts count once, not in each block.
    assert begun == {task: n_passes if streams else 1 for task, streams in zip("abc", streaming)}


@STREAMING
@pytest.mark.parametrize("survey", [read_first, read_last_task_first])
def test_surveyed_uses_all_texts_if_the_survey_reads_otherwise(streaming, survey):
    begun, expected = Counter(), list(make(Counter(), streaming).texts())
    assert texts_used(survey, make(begun, streaming)) == expected
    assert max(begun.values()) <= 2


def test_surveyed_raises_errors_of_the_survey_first_and_waits_for_no_dead_thread():
    def read_some(texts):
        assert next(iter(texts)) == "0"
        raise ValueError("cannot be used")

    def fail(train):
        list(train.examples())
        raise KeyError("cannot be surveyed")

    with pytest.raises(KeyError, match="surveyed"):
        surveyed(fail, make(Counter(), [1, 1]), read_some)
    begun, whole = Counter(), []
    finish = surveyed(lambda train: whole.extend(train.examples()), make(begun, [1, 1]), read_some)
    assert len(whole) == 200
    with pytest.raises(ValueError, match="used"):
        finish()
    assert begun == {"a": 1, "b": 1}


def test_surveyed_ends_if_it_is_interrupted_while_the_thread_uses_texts():
    rows = partial(map, lambda n: [Message(text=f"{n}", labels=["a"])], range(20))
    train = Teacher({"train": rows}, streaming=True).for_split("train", training=True)
    was_read = Event()

    def survey(train):
        list(train.examples())
        was_read.set()

    def interrupt(texts):
        next(iter(texts))
        was_read.wait()
        time.sleep(0.2)  # Until the survey waits for this thread.
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt):
        surveyed(survey, train, interrupt)
