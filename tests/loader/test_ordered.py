"""Results come in the order of the tasks, whoever carries them out; arrays as they were sent."""

import os

import numpy as np
import pytest

from tests.loader.sources import Echo
from thincdialog.loader.hands import ProcessHands, ThreadHands
from thincdialog.loader.ordered import OrderedMap, waits_alone


def hands_of(kind, n):
    if kind == "thread":
        return ThreadHands(Echo(), n)
    return ProcessHands(Echo(), n, kind, lambda line: None)


@pytest.mark.parametrize("kind", ["thread", "fork", "forkserver"])
@pytest.mark.parametrize("alone", [False, True])
def test_ordered_results_small_and_large(kind, alone):
    # Beyond what goes through a pipe at once, and not.
    tasks = [np.arange(size) for size in (0, 3, 100_000, 5000, 1, 400_000) * 5]
    mapped = OrderedMap(iter(tasks), Echo())
    mapped.bring_in(hands_of(kind, 2))
    token = waits_alone.set(alone)
    try:
        found = list(mapped)
    finally:
        waits_alone.reset(token)
        mapped.close()
    assert len(found) == len(tasks)
    for (array, _), task in zip(found, tasks):
        np.testing.assert_array_equal(array, task)
    if kind == "thread":
        assert {process for _, process in found} == {os.getpid()}


def test_ordered_tasks_are_asked_for_as_they_are_needed():
    asked = []

    def tasks():
        for number in range(10**9):
            asked.append(number)
            yield number

    mapped = OrderedMap(tasks(), Echo())
    mapped.bring_in(ThreadHands(Echo(), 3))
    assert [next(mapped)[0] for _ in range(100)] == list(range(100))
    mapped.close()
    assert len(asked) < 120


def test_ordered_errors_come_in_their_turn():
    def work(task):
        if task == 20:
            raise KeyError(task)
        return task

    mapped = OrderedMap(iter(range(40)), lambda: work)
    seen = []
    with pytest.raises(KeyError):
        for value in mapped:
            seen.append(value)
    assert seen == list(range(20))
