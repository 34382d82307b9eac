"""Let threads that share a stream read it together."""

import threading
from itertools import tee
from typing import Callable, Dict, Iterator, Tuple, Union

from .blocks import Block

# Number of the epoch, and number of times that the stream was already read within it.
Pass = Tuple[int, int]


class SharedPasses:
    """Read a stream once per pass, and hand all of its blocks to every thread. A block stays in
    memory until the slowest thread has taken it, or has begun a later pass.

    n_threads (int): Number of threads that share the stream.
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._turn = threading.Lock()
        # By the number of the pass: the iterators of the threads that have not begun it.
        self._passes: Dict[Pass, Dict[int, Iterator[Union[Block, Exception]]]] = {}

    def blocks(
        self, number: Pass, thread: int, read: Callable[[], Iterator[Block]]
    ) -> Iterator[Block]:
        """Yield the blocks of a pass, for one of the threads, which begins each pass once and in
        ascending order.

        number (Pass): Number of the pass.
        thread (int): Number of the thread, from 0.
        read (Callable): Begins to read; only the first thread calls it.
        """
        with self._turn:
            if number not in self._passes:
                self._passes[number] = dict(enumerate(tee(_with_error(read), self.n_threads)))
            own = self._passes[number][thread]
            for each, unbegun in list(self._passes.items()):
                if each <= number:
                    unbegun.pop(thread, None)
                if not unbegun:
                    del self._passes[each]
        while True:
            with self._turn:
                block = next(own, None)
            if block is None:
                return
            if isinstance(block, Exception):
                raise block
            yield block


def _with_error(read: Callable[[], Iterator[Block]]) -> Iterator[Union[Block, Exception]]:
    """Yield all blocks, and then the error that ended the reading, if any, for all threads."""
    try:
        yield from read()
    except Exception as error:
        yield error
