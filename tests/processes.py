"""Helpers of tests for processes: limits for this process, trainings in others, and slow cases."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Set

import pytest


def slow(*values):
    """Mark a case of a parametrised test as slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


@contextmanager
def limited(kind, most):
    """Limit a resource of this process in a ``with`` block. For example, RLIMIT_FSIZE limits the
    bytes of a file, as on a full disk."""
    limit = getattr(resource, kind)
    before = resource.getrlimit(limit)
    resource.setrlimit(limit, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(limit, before)


@contextmanager
def little_memory(more=1 << 30):
    """Limit the memory that this process may take in addition, in bytes, in a ``with`` block."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    with limited("RLIMIT_AS", pages * resource.getpagesize() + more):
        yield


class TookTooLongError(BaseException):
    """Raised if an action takes too long or hangs."""


@contextmanager
def no_longer_than(seconds):
    """Interrupt a ``with`` block if it takes longer, even if it waits or catches all errors."""
    interruptions = []

    def end(*_):
        interruptions.append(TookTooLongError())
        raise interruptions[0]

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if interruptions:
        raise interruptions[0]


def open_channels() -> Set[str]:
    """Return the pipes and sockets that this process has open, each as "pipe:[number]" or
    similar."""
    names = set()
    for place in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # The descriptor of the listing itself is closed again.
            names.add(os.readlink(place))
    return {name for name in names if name.startswith(("pipe:", "socket:"))}


def left_over(session: int, seconds: float = 5.0):
    """Return the processes of a session that are still running after some seconds."""
    until = time.monotonic() + seconds
    while True:
        listed = subprocess.run(
            ["ps", "-s", str(session), "-o", "pid=,stat="], capture_output=True, text=True
        )
        pids = [line.split()[0] for line in listed.stdout.splitlines() if " Z" not in line]
        if not pids or time.monotonic() > until:
            return pids
        time.sleep(0.05)


def start(folder, *arguments, env=None, **options):
    """Start a process of the package's command line in a folder."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **options}
    given = {**os.environ, "PYTHONPATH": ":".join(sys.path), **(env or {})}
    command = [sys.executable, "-m", "thincdialog", *arguments]
    return subprocess.Popen(command, cwd=folder, env=given, **options)
