"""Counts of the work that a device would have been asked to do, and the lines that asked for it."""

import os
import sys
from collections import Counter
from contextlib import contextmanager

HERE = os.path.dirname(os.path.abspath(__file__))
IS_13 = os.environ.get("CUPY_STAND_IN", "14") == "13"
_listening = []


class Counts:
    """Counts of a block of code.

    launches, waits, h2d, d2h (int): Kernels started, at least; how often the host waited for the
        device; copies from the host, and to it.
    h2d_bytes, d2h_bytes (int): Bytes of the copies in each direction.
    most_cells (int): The most cells that a single launch went through, at least.
    generators (int): Generators of random numbers that were made.
    taken (int): Blocks of memory that the pool took from the device.
    lines (Counter): How often each of (kind, what, line of the project) was counted.
    """

    def __init__(self):
        self.launches = self.waits = self.h2d = self.d2h = self.h2d_bytes = 0
        self.d2h_bytes = self.most_cells = self.generators = self.taken = 0
        self.most_line = ""
        self.lines = Counter()

    def shown(self, *kinds):
        """Format the lines that were counted, the most frequent first."""
        found = [(n, *what) for what, n in self.lines.most_common() if what[0] in kinds]
        return "\n".join(f"{n:5} {kind} {name}: {line}" for n, kind, name, line in found)


@contextmanager
def counted():
    """Count the work of a ``with`` block. YIELDS the Counts."""
    counts = Counts()
    _listening.append(counts)
    try:
        yield counts
    finally:
        _listening.remove(counts)


def _line(depth=3):
    frame, last = sys._getframe(depth), ""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(HERE):
            last = last or f"{file}:{frame.f_lineno}"
            if f"{os.sep}thincdialog{os.sep}" in file:
                return f"{file.rsplit('thincdialog' + os.sep)[-1]}:{frame.f_lineno}"
        frame = frame.f_back
    return last


def _count(kind, what, n, n_bytes=0):
    if not _listening or not n:
        return
    line = _line()
    for counts in _listening:
        setattr(counts, kind, getattr(counts, kind) + n)
        counts.lines[kind, what, line] += n
        if n_bytes:
            of_kind = f"{kind}_bytes"
            setattr(counts, of_kind, getattr(counts, of_kind) + n_bytes)


def launched(what, n=1, cells=0):
    _count("launches", what, int(n))
    for counts in _listening:
        if cells > counts.most_cells:
            counts.most_cells, counts.most_line = int(cells), f"{what}: {_line(2)}"


def made_generator(what):
    _count("generators", what, 1)


def took(n_bytes):
    """Count that the pool takes memory from the device, for which the host waits."""
    _count("taken", f"{n_bytes:,} bytes", 1)


def waited(what, n_bytes=0):
    """Count that the host waits for a value, which is copied to it."""
    _count("waits", what, 1)
    _count("d2h", what, 1, n_bytes)


def waited_only(what):
    """Count that the host waits, without a copy."""
    _count("waits", what, 1)


def uploaded(what, n_bytes):
    _count("h2d", what, 1, n_bytes)
