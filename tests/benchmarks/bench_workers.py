"""What it costs to hand a parley to a worker and to hear of it, beside the parley itself.

A parley that does nothing: each alone ("round trip"), and as they come in training, with
some under way all the time ("stream"). Medians of 7, in microseconds; and how long workers
take to start and to stop.

    python tests/benchmarks/bench_workers.py

On 2 cores that others used, too, in two runs: threads 46-57 a round trip and 32-38 in a
stream, with 14-18 of CPU time (of the worker, too); processes 43-163, 67-125 and 26-28 (here
alone). Processes start in 0.9-1.3 s, two of them in 1.4-1.9 s.
"""

import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from thincdialog.parallel import ProcessWorkers, Recipe, ThreadWorkers  # noqa: E402

from thincdialog.worlds import HogwildWorld, Workers, World, WorldWorker  # noqa: E402

N_REPEATS, N_ROUND_TRIPS, N_STREAM = 7, 500, 2000


class Idle(World):
    """Parleys without anybody."""

    def __init__(self) -> None:
        super().__init__([])

    def epoch_done(self) -> bool:
        return False

    def _parley(self) -> None:
        pass


def make_worker(worker: int, arrays: Any) -> WorldWorker:
    return WorldWorker(Idle())


def make_workers(kind: str, n: int) -> Workers:
    if kind == "thread":
        return ThreadWorkers(lambda worker: make_worker(worker, {}), n)
    # By the name under which a process can import it.
    from tests.benchmarks import bench_workers

    return ProcessWorkers(Recipe(bench_workers.make_worker, {}), n)


def main() -> None:
    print("workers            start s  stop s  round trip us      stream us    CPU us here")
    for kind in ("thread", "process"):
        for n in (1, 2):
            began = time.perf_counter()
            world = HogwildWorld(make_workers(kind, n))
            start = time.perf_counter() - began
            round_trip, stream, cpu = [], [], []
            for _ in range(N_REPEATS):
                began = time.perf_counter()
                for _ in range(N_ROUND_TRIPS):
                    world.parley()
                    world.drain()
                round_trip.append((time.perf_counter() - began) / N_ROUND_TRIPS * 1e6)
                began, used = time.perf_counter(), time.process_time()
                for _ in range(N_STREAM):
                    world.epoch_done()
                    world.parley()
                    world.finished()
                world.drain()
                stream.append((time.perf_counter() - began) / N_STREAM * 1e6)
                cpu.append((time.process_time() - used) / N_STREAM * 1e6)
            began = time.perf_counter()
            world.shutdown()
            stop = time.perf_counter() - began
            times = [statistics.median(each) for each in (round_trip, stream, cpu)]
            shown = "".join(f"{value:15.0f}" for value in times)
            print(f"{n} {kind:<15} {start:8.2f} {stop:7.2f}{shown}")


if __name__ == "__main__":
    main()
