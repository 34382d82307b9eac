"""The permission to read pickles. Reading a pickle can run any code, so only the user can permit
it, not a config."""

import os
from contextlib import contextmanager
from typing import Iterator

# Environment variable with the permission, so that worker processes inherit it.
ALLOWED = "THINCDIALOG_ALLOW_PICKLE"
HOW = f"add --allow-pickle to the command (in Python, set {ALLOWED}=1)"


def are_allowed() -> bool:
    """Return whether the user has permitted reading pickles."""
    return os.environ.get(ALLOWED, "0") not in ("", "0")


@contextmanager
def allowing(is_allowed: bool) -> Iterator[None]:
    """Permit reading pickles while the context is active.

    is_allowed (bool): Whether to permit it; if not, the earlier permission stays as it was.
    """
    before = os.environ.get(ALLOWED)
    if is_allowed:
        os.environ[ALLOWED] = "1"
    try:
        yield
    finally:
        if is_allowed:
            os.environ.pop(ALLOWED)
            os.environ.update({} if before is None else {ALLOWED: before})
