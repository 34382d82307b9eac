"""Threads that read a stream together."""

import threading
from itertools import count

import pytest

from thincdialog.examples.shared_passes import SharedPasses


def test_shared_passes_read_once_and_give_every_thread_all_blocks():
    n, n_blocks, read = 4, 50, count()
    passes = SharedPasses(n)
    seen = [[[] for _ in range(n)] for _ in range(2)]

    def blocks():
        return (next(read) for _ in range(n_blocks))

    def work(thread):
        for number in range(2):
            seen[number][thread] += passes.blocks(number, thread, blocks)
            barrier.wait()

    barrier = threading.Barrier(n)
    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(n)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert seen == [[list(range(n_blocks))] * n, [list(range(n_blocks, 2 * n_blocks))] * n]


def test_shared_passes_a_thread_that_is_a_pass_late_reads_by_itself():
    passes = SharedPasses(2)
    assert list(passes.blocks(1, 0, lambda: iter("ab"))) == ["a", "b"]
    assert list(passes.blocks(2, 0, lambda: iter("cd"))) == ["c", "d"]
    assert list(passes.blocks(1, 1, lambda: iter("ab"))) == ["a", "b"]


def test_shared_passes_raise_an_error_in_each_thread():
    def blocks():
        yield "a"
        raise ValueError("wrong")

    passes = SharedPasses(2)
    for thread in range(2):
        with pytest.raises(ValueError, match="wrong"):
            list(passes.blocks(0, thread, blocks))
