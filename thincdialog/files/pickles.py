"""Pickles run any code when they are read: only a user can allow it, and no config."""

import os
from contextlib import contextmanager
from typing import Iterator

# Worker processes have it from the one that starts them.
ALLOWED = "THINCDIALOG_ALLOW_PICKLE"
HOW = f"add --allow-pickle to the command (in Python, set {ALLOWED}=1)"


def are_allowed() -> bool:
    """Whether the user has said that pickles may be read."""
    return os.environ.get(ALLOWED, "0") not in ("", "0")


@contextmanager
def allowing(is_allowed: bool) -> Iterator[None]:
    """A stretch in which pickles may be read, if that is allowed."""
    before = os.environ.get(ALLOWED)
    if is_allowed:
        os.environ[ALLOWED] = "1"
    try:
        yield
    finally:
        if is_allowed:
            os.environ.pop(ALLOWED)
            os.environ.update({} if before is None else {ALLOWED: before})
