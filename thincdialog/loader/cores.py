"""The number of processors that this process may use."""

import math
import os
from pathlib import Path

# File with the CPU time that a container may use in a period, and the period, in microseconds, such
# as "200000 100000" (2 processors), or "max 100000" (no limit).
QUOTA = Path("/sys/fs/cgroup/cpu.max")


def n_cores(quota: Path = QUOTA) -> int:
    """Return the number of processors that this process may use, 1 or more: the size of its CPU
    affinity, but no more than the quota of its container allows.

    quota (Path): File of Linux's control groups (version 2) with the quota.
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
