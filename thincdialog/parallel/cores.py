"""How many processors there are for us."""

import os


def n_cores() -> int:
    """Processors that this process may run on, 1 or more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
