"""Step numbers that several workers draw from one counter."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.runners.step_numbers import StepNumbers


def make_numbers():
    return StepNumbers([0, 0], threading.Lock(), threading.BoundedSemaphore(4), 4)


def test_step_numbers_end_at_the_limit_and_continue_after_the_last_step():
    numbers = make_numbers()
    assert numbers.draw() is None
    numbers.begin(7, 3)
    assert [numbers.draw() for _ in range(5)] == [8, 9, 10, None, None]
    numbers.give_back()
    assert [numbers.draw() for _ in range(2)] == [10, None]
    numbers.begin(10, float("inf"))
    assert [numbers.draw() for _ in range(3)] == [11, 12, 13]
    numbers.end_at(14)
    numbers.end_at(15)  # The limit is never raised.
    assert [numbers.draw() for _ in range(2)] == [14, None]
    numbers.begin(14, 5)
    numbers.stop()
    assert numbers.draw() is None


def test_step_numbers_are_stopped_though_a_dead_worker_has_the_lock():
    numbers = make_numbers()
    numbers.begin(0, 5)
    numbers.lock.acquire()
    numbers.stop()
    numbers.lock.release()
    assert numbers.draw() is None


@settings(max_examples=30)
@given(st.integers(0, 40), st.lists(st.integers(0, 30), min_size=1, max_size=4), st.integers(0, 99))
def test_step_numbers_allow_all_steps_up_to_the_limit_or_the_last_batch(room, shares, seed):
    """Each worker has some batches, not all of which make a step."""
    numbers, made, lock = make_numbers(), [], threading.Lock()

    def work(n_left, rng):
        while n_left and numbers.draw() is not None:
            n_left -= 1
            if rng.random() < 0.3:
                numbers.give_back()
            else:
                with lock:
                    made.append(1)
        left.append(n_left)

    n_before, left = 0, shares
    while True:  # Like the runner: repeat while there are steps and batches left.
        numbers.begin(n_before, room - n_before)
        rngs = [random.Random(seed + n_before + n) for n in range(len(left))]
        shares, left = left, []
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, shares, rngs))
        n_before = len(made)
        assert n_before <= room
        if n_before == room or not any(left):
            break
    assert n_before == room or sum(left) == 0


@pytest.mark.parametrize("room", [1, 5])
def test_step_numbers_are_each_given_once(room):
    numbers, drawn = make_numbers(), []
    numbers.begin(0, 1000 * room)

    def draw(worker):
        while (number := numbers.draw()) is not None:
            drawn.append(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(draw, range(4)))
    assert sorted(drawn) == list(range(1, 1000 * room + 1))
