"""Threads that read a stream together."""

import threading
from itertools import count
from weakref import WeakSet

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
            seen[number][thread] += passes.blocks((number, 0), thread, blocks)
            barrier.wait()

    barrier = threading.Barrier(n)
    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(n)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert seen == [[list(range(n_blocks))] * n, [list(range(n_blocks, 2 * n_blocks))] * n]


class Letter(str):
    """A block that can be referred to weakly."""


def test_shared_passes_keep_the_blocks_of_a_thread_that_is_late_until_it_goes_further():
    passes, kept = SharedPasses(2), WeakSet()

    def blocks(letters):
        for letter in map(Letter, letters):
            kept.add(letter)
            yield letter

    assert list(passes.blocks((1, 0), 0, lambda: blocks("ab"))) == ["a", "b"]
    assert list(passes.blocks((1, 1), 0, lambda: blocks("cd"))) == ["c", "d"]
    assert list(passes.blocks((1, 2), 0, lambda: blocks("e"))) == ["e"]
    assert list(passes.blocks((1, 0), 1, lambda: blocks("wrong"))) == ["a", "b"]
    assert sorted(kept) == ["c", "d", "e"]
    assert list(passes.blocks((2, 0), 1, lambda: blocks("f"))) == ["f"]
    assert sorted(kept) == ["f"]
    assert list(passes.blocks((2, 0), 0, lambda: blocks("wrong"))) == ["f"]
    assert not kept


def test_shared_passes_raise_an_error_in_each_thread():
    def blocks():
        yield "a"
        raise ValueError("wrong")

    passes = SharedPasses(2)
    for thread in range(2):
        with pytest.raises(ValueError, match="wrong"):
            list(passes.blocks((0, 0), thread, blocks))
