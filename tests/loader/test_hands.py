"""Processes that carry out tasks, and the end of all."""

import multiprocessing

import pytest

from tests.loader.test_starting import len_of_words
from thincdialog.errors import WorkerError
from thincdialog.loader.hands import ProcessHands


def unspeakable():
    return lambda task: (lambda: task) if task == 1 else task


def test_hands_whose_answer_cannot_go_to_another_process_say_so():
    hands, done = ProcessHands(unspeakable, 1, "fork", print), []
    try:
        for task in range(3):
            while not hands.has_room:
                done += hands.wait(60.0)
            hands.give(task, task)
        while len(done) < 3:
            done += hands.wait(60.0)
    finally:
        hands.end()
    assert [done[0].value, done[2].value] == [0, 2]
    text = "what was read cannot go from a process to another: .*lambda.*workers = 0$"
    with pytest.raises(WorkerError, match=f"^Worker 0: {text}"):
        raise done[1].value.error(0)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_hands_that_have_ended_start_no_other_process(method):
    """At the end of a program, while a thread of it still waits for them."""
    hands = ProcessHands(len_of_words, 2, method, print)
    while hands.n_ready < 2:
        hands.wait(60.0)
    died = hands._workers[0]
    hands.end()
    with pytest.raises(WorkerError, match="Worker 0: its process"):
        hands._replace(died)
    assert not multiprocessing.active_children()
