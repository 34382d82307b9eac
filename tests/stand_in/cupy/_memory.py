"""The pool of a device's memory. Free memory is used again, cut to size."""

import threading
from collections import deque
from contextlib import contextmanager

from ._counts import took

_UNIT = 512


class OutOfMemoryError(MemoryError):
    pass


class _Chunk:
    """A piece of a block of the device's memory, and its neighbours."""

    __slots__ = ("size", "before", "after", "is_free")

    def __init__(self, size, before=None, after=None):
        self.size, self.before, self.after, self.is_free = size, before, after, True


class Held:
    """The memory of an array, until the array is garbage."""

    __slots__ = ("_pool", "_chunk")

    def __init__(self, pool, n_bytes):
        self._pool, self._chunk = pool, pool.cut(n_bytes)

    def __del__(self):
        chunk = getattr(self, "_chunk", None)  # There is none if the memory was refused.
        if chunk is not None:
            self._pool.given_back.append(chunk)


class MemoryPool:
    def __init__(self, allocator=None):
        self.given_back = deque()  # Filled at any time, even while memory is looked for.
        self._chunks, self._lock, self._total, self._largest = set(), threading.RLock(), 0, None

    def cut(self, n_bytes):
        with self._lock:
            size = max(1, -(-n_bytes // _UNIT)) * _UNIT
            if self._largest is not None and size > self._largest:
                raise OutOfMemoryError(
                    f"Out of memory allocating {size:,} bytes (allocated so far: {self._total:,} "
                    "bytes)."
                )
            self._take_back()
            fitting = [each for each in self._chunks if each.is_free and each.size >= size]
            if fitting:
                chunk = min(fitting, key=lambda each: each.size)
            else:
                took(size)
                self._total += size
                chunk = _Chunk(size)
                self._chunks.add(chunk)
            if chunk.size > size:
                rest = _Chunk(chunk.size - size, chunk, chunk.after)
                if rest.after is not None:
                    rest.after.before = rest
                chunk.size, chunk.after = size, rest
                self._chunks.add(rest)
            chunk.is_free = False
            return chunk

    def _take_back(self):
        while self.given_back:
            chunk = self.given_back.popleft()
            chunk.is_free = True
            if chunk.before is not None and chunk.before.is_free:
                chunk = chunk.before
            while chunk.after is not None and chunk.after.is_free:
                gone = chunk.after
                chunk.size, chunk.after = chunk.size + gone.size, gone.after
                if gone.after is not None:
                    gone.after.before = chunk
                self._chunks.discard(gone)

    def used_bytes(self):
        with self._lock:
            self._take_back()
            return sum(each.size for each in self._chunks if not each.is_free)

    def total_bytes(self):
        return self._total

    def free_all_blocks(self, stream=None):
        with self._lock:
            self._take_back()
            for each in [each for each in self._chunks if each.is_free]:
                if each.before is None and each.after is None:
                    self._chunks.discard(each)
                    self._total -= each.size

    @contextmanager
    def refusing(self, n_bytes):
        """Refuse arrays with more bytes, in a ``with`` block."""
        self._largest = n_bytes
        try:
            yield
        finally:
            self._largest = None


pool = MemoryPool()
