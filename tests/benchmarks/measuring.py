"""Shared code of the benchmarks: real data, rivals that take turns, medians, other libraries."""

import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
DATA = Path(os.environ.get("DATA", SHARED / "data"))
# Every benchmark has --quick: it then does just enough to show that it runs, in a few seconds. Its
# figures mean nothing.
QUICK = "--quick" in sys.argv
sys.argv[:] = [word for word in sys.argv if word != "--quick"]
# Then most of the time goes to PyTorch, which Thinc imports in each process if it can. Benchmarks
# that do not compare with PyTorch run without it.
COMPARE_TORCH = ("bench_torch_ranker", "bench_transformer")
if QUICK and Path(sys.argv[0]).stem not in COMPARE_TORCH:
    sys.path.insert(0, str(Path(__file__).with_name("without_torch")))
    os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")])
# Number of rows of real data that are read.
QUICK_ROWS = 100


def sized(full: Any, quick: Any) -> Any:
    """Return how much to do: the first value, or the second with --quick."""
    return quick if QUICK else full


# Overrides of a config that hashes: a small table is fast to initialize and to save.
SMALL = sized({}, {"tokenizer.n_rows": 512})


def has_data(name: str) -> bool:
    """Return whether ../shared/data (or the folder DATA) has this data set. If not, print that."""
    if not (DATA / name).exists():
        print(f"skipped: {DATA / name} is not there")
    return (DATA / name).exists()


def read_rows(path: Path) -> Iterator[Dict[str, Any]]:
    """Yield the rows of a zipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf8") as lines:
        # Files may be in order of their labels.
        yield from islice(map(json.loads, lines), 0, *sized((None, 1), (20 * QUICK_ROWS, 20)))


def first_rows(name: str, n: Optional[int]) -> Iterator[Dict[str, Any]]:
    """Return the first rows of ../shared/data. If the data is missing, return conversations or
    labelled texts of words drawn by Zipf's law."""
    n = sized(n, QUICK_ROWS)
    rng, is_labelled = random.Random(0), not name.startswith("self_dialogue")

    def text() -> str:
        return " ".join(f"w{int(20000 ** rng.random())}" for _ in range(rng.randint(3, 17)))

    def make() -> Dict[str, Any]:
        if is_labelled:
            return {"text": text(), "label": text()[:2]}
        return {"turns": [{"speaker": "ab"[turn % 2], "text": text()} for turn in range(16)]}

    return islice(read_rows(DATA / name) if (DATA / name).exists() else iter(make, None), n)


def cpu_seconds(work: Callable[[], Any]) -> Tuple[float, Any]:
    """Return the seconds of CPU time, and the result of the work."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


class Stopwatch:
    """Adds up the CPU seconds of ``with`` blocks."""

    seconds = 0.0

    def __enter__(self) -> None:
        self._started = time.process_time()

    def __exit__(self, *error: Any) -> None:
        self.seconds += time.process_time() - self._started


def in_turns(names: Iterable, measure: Callable[[Any], Any], n_rounds: int) -> Dict[Any, List]:
    """Measure all names in turns, round after round. Return the measurements of each."""
    found: Dict[Any, List] = {name: [] for name in names}
    for _ in range(n_rounds):
        for name, measured in found.items():
            measured.append(measure(name))
    return found


def medians(found: Mapping[Any, List]) -> Dict[Any, Any]:
    """Return the median of each, without measurements that are None; None if there are no
    others."""
    known = {name: [each for each in values if each is not None] for name, values in found.items()}
    return {name: statistics.median(v) if v else None for name, v in known.items()}


def rival(variable: str, *command: str, folder: Optional[Path] = None, **environment: str) -> Any:
    """Run a script with the Python that an environment variable names. Return the JSON that it
    prints in its last line; None if the variable is not set."""
    python = os.environ.get(variable)
    if not python:
        return None
    known = {**os.environ, **environment}
    ran = subprocess.run(
        [python, *command], cwd=folder, capture_output=True, text=True, check=True, env=known
    )
    return json.loads(ran.stdout.splitlines()[-1])


def parlai(*command: str, **environment: str) -> Any:
    """Run a script of ../shared/parlai_bench (or the folder PARLAI_BENCH) with PARLAI_PYTHON.
    Return what it prints."""
    folder = Path(os.environ.get("PARLAI_BENCH", SHARED / "parlai_bench"))
    return rival("PARLAI_PYTHON", *command, folder=folder, **environment)


def in_threads(n_threads: int, work: Callable[[int], Any]) -> None:
    """Run the work once in each thread, and wait for all."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def burst(n_threads: int, work: Callable[[int], int], seconds: float) -> float:
    """Return the items per second that threads process together.

    work (Callable[[int], int]): Processes items. Gets a thread's number, returns how many.
    """
    n_done = [0] * n_threads

    def run(thread: int) -> None:
        stop = time.perf_counter() + seconds
        while time.perf_counter() < stop:
            n_done[thread] += work(thread)

    in_threads(n_threads, run)
    return sum(n_done) / seconds


def arithmetic() -> Callable[[int], float]:
    """Return a function that computes this many steps of arithmetic without the GIL."""
    from thincdialog.ops.kernels.kernel import kernel

    @kernel
    def compute(n: int) -> float:
        x = 1.0
        for _ in range(n):
            x = x * 1.0000001 + 1e-9
        return x

    return compute
