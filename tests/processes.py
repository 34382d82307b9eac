"""What tests do to processes: limits for this one, others that train, and cases that take long."""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager

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


def start(folder, *arguments, env=None, **options):
    """A process of the package's command line in a folder."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **options}
    given = {**os.environ, "PYTHONPATH": ":".join(sys.path), **(env or {})}
    command = [sys.executable, "-m", "thincdialog", *arguments]
    return subprocess.Popen(command, cwd=folder, env=given, **options)
