"""Processes that carry out tasks, and the end of all."""

import multiprocessing

import pytest

from tests.loader.test_starting import len_of_words
from thincdialog.errors import WorkerError
from thincdialog.loader.hands import ProcessHands


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
