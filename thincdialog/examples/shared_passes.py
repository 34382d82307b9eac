"""Let threads that share a stream read it together."""

import threading
from itertools import tee
from typing import Callable, Dict, Iterator, List, Union

from .blocks import Block


class SharedPasses:
    """Read a stream once per pass, and hand all of its blocks to every thread. A block stays in
    memory until the slowest thread has taken it.

    n_threads (int): Number of threads that share the stream.
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._turn = threading.Lock()
        # By the number of the pass: one iterator for each thread.
        self._passes: Dict[int, List[Iterator[Union[Block, Exception]]]] = {}

    def blocks(
        self, number: int, thread: int, read: Callable[[], Iterator[Block]]
    ) -> Iterator[Block]:
        """Yield the blocks of a pass, for one of the threads.

        number (int): Number of the pass.
        thread (int): Number of the thread, from 0.
        read (Callable): Begins to read; only the first thread calls it.
        """
        with self._turn:
            if number not in self._passes:
                self._passes = {number: list(tee(_with_error(read), self.n_threads))}
            own, self._passes[number][thread] = self._passes[number][thread], iter(())
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
