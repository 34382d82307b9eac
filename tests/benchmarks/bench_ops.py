"""Compare compiled ops with Thinc's: their cost, and how long they keep other threads waiting.

For each op, the CPU times of stock NumpyOps (``use_blis=False``) and of our NumPy ops are divided
by that of ``DialogFastOps`` (medians of alternating bursts; more is better for ours). Then, for
another thread that computes without the GIL and asks for it every 20 microseconds: how much longer
it takes because of the waits (less is better), with the NumPy ops and with the compiled ones. Time
in which the thread could run, but had no core, does not count (Linux reports how much that was).

    python tests/benchmarks/bench_ops.py
"""

import time
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import numpy as np
from measuring import arithmetic, in_threads, in_turns, medians, sized
from thinc.api import NumpyOps, Ops

from thincdialog.ops import bags
from thincdialog.ops.dialog_fast_ops import DialogFastOps
from thincdialog.ops.dialog_ops import DialogNumpyOps

BURST, N_BURSTS, WAIT, N_WAITS = sized((0.02, 9, 0.25, 3), (0.001, 1, 0.01, 1))
SCHEDULE = Path("/proc/thread-self/schedstat")
ALL = {"Thinc": NumpyOps(use_blis=False), "NumPy": DialogNumpyOps(), "fast": DialogFastOps()}
Call = Callable[[Ops], object]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("f")


def ints(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, high, size=shape).astype("i")


def calls() -> Dict[str, Call]:
    """Return ops with the arrays that they get for a batch of texts."""
    X, dY, table = floats(2000, 256), floats(2000, 256), floats(20_000, 128)
    Z = floats(2000, 128, 3)
    ids, sums = ints(20_000, 10_000), floats(500, 128)
    bag_lengths = np.full((500,), 20, dtype="i")
    given: Dict[str, Tuple] = {}
    for name in ("relu", "gelu"):
        given[name] = (X,)
        given[f"backprop_{name}"] = (dY, X)
    given["maxout"] = (Z,)
    scale = np.ones((len(bag_lengths), 1), "f")
    return {
        **{name: methodcaller(name, *each) for name, each in given.items()},
        "bags: sum_bags": lambda ops: bags.sum_bags(ops, table, ids, bag_lengths, scale),
        "bags: row_gradients": lambda ops: bags.row_gradients(ops, sums, ids, bag_lengths, scale),
    }


def cpu_seconds(call: Call, kind: str) -> float:
    """Return the CPU seconds of one call, measured in a burst."""
    n, started = 0, time.thread_time()
    while time.thread_time() - started < BURST:
        call(ALL[kind])
        n += 1
    return (time.thread_time() - started) / n


def blocked_seconds() -> float:
    """Return a clock of the seconds in which this thread has neither run nor waited for a core."""
    in_line = int(SCHEDULE.read_text().split()[1]) / 1e9 if SCHEDULE.exists() else 0.0
    return time.perf_counter() - time.thread_time() - in_line


def waits(call: Call, compute: Callable[[int], float], n: int, kind: str) -> float:
    """Return the seconds that a thread waits per second of computing, measured for ``WAIT``
    seconds. The thread asks for the GIL after every ``n`` steps of computing without it."""
    end, found = time.perf_counter() + WAIT, []

    def work(number: int) -> Any:
        if number == 0:
            while time.perf_counter() < end:
                call(ALL[kind])
            return
        blocked, computed = blocked_seconds(), time.thread_time()
        while time.perf_counter() < end:
            compute(n)
        found.append((blocked_seconds() - blocked) / (time.thread_time() - computed))

    in_threads(2, work)
    return found[0]


def main() -> None:
    compute = arithmetic()
    compute(1)
    started = time.perf_counter()
    compute(1_000_000)
    n = int(1_000_000 * 20e-6 / (time.perf_counter() - started))
    print("CPU time over that of the fast ops; waits of another thread for the GIL")
    print(f"{'op':24}{'fast, us':>10}{'Thinc':>8}{'NumPy':>8}{'waits: NumPy':>16}{'fast':>7}")
    for name, call in calls().items():
        for ops in ALL.values():
            call(ops)
        times = medians(in_turns(ALL, partial(cpu_seconds, call), N_BURSTS))
        waited = medians(in_turns(("NumPy", "fast"), partial(waits, call, compute, n), N_WAITS))
        fast = times["fast"]
        print(
            f"{name:24}{1e6 * fast:10,.0f}{times['Thinc'] / fast:8.2f}{times['NumPy'] / fast:8.2f}"
            f"{waited['NumPy']:16.0%}{waited['fast']:7.0%}"
        )


if __name__ == "__main__":
    main()
