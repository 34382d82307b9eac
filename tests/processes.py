"""What tests do to processes: limits for this one, others that train, and cases that take long."""

import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Set

import pytest


def slow(*values):
    """A slow case of a parametrised test."""
    return pytest.param(*values, marks=pytest.mark.slow)


@contextmanager
def limited(kind, most):
    """A stretch in which this process may have only so much, such as RLIMIT_FSIZE: so many
    bytes in a file, as on a full disk."""
    limit = getattr(resource, kind)
    before = resource.getrlimit(limit)
    resource.setrlimit(limit, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(limit, before)


@contextmanager
def little_memory(more=1 << 30):
    """A stretch in which this process may take so many bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    with limited("RLIMIT_AS", pages * resource.getpagesize() + more):
        yield


class TookTooLongError(BaseException):
    """What was tried waits for something, or for ever."""


@contextmanager
def no_longer_than(seconds):
    """A stretch that is interrupted if it takes longer, also where it waits."""

    def end(*_):
        raise TookTooLongError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def open_channels() -> Set[str]:
    """The pipes and sockets that this process has open: "pipe:[number]", one by one."""
    names = set()
    for place in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # That of the listing itself is closed again.
            names.add(os.readlink(place))
    return {name for name in names if name.startswith(("pipe:", "socket:"))}


def start(folder, *arguments, env=None, **options):
    """A process of the package's command line in a folder."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **options}
    given = {**os.environ, "PYTHONPATH": ":".join(sys.path), **(env or {})}
    command = [sys.executable, "-m", "thincdialog", *arguments]
    return subprocess.Popen(command, cwd=folder, env=given, **options)
