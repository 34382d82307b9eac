"""How many processors there are for us."""

import math
import os
from pathlib import Path

# A container's share of time, "max 100000" or "200000 100000": of so many microseconds.
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def n_cores(quota: Path = QUOTA) -> int:
    """Processors that this process may run on, 1 or more: as many as its affinity has, and
    no more than the quota of its container comes to.

    quota (Path): The file of Linux's control groups (version 2) that says which.
    """
    if hasattr(os, "sched_getaffinity"):
        n = len(os.sched_getaffinity(0))
    else:
        n = os.cpu_count() or 1
    try:
        allowed, period = map(float, quota.read_text().split())
    except (OSError, ValueError):  # Another system, or no limit.
        return n
    return max(1, min(n, math.ceil(allowed / period)))
