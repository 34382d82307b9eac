"""What the benchmarks share: real data, rivals that take turns, medians, other libraries."""

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
# Every benchmark takes --quick: it then does as little as shows that it runs, in a few seconds.
# Its figures mean nothing.
QUICK = "--quick" in sys.argv
sys.argv[:] = [word for word in sys.argv if word != "--quick"]
# Then PyTorch, which Thinc imports in each process if it can, costs most of the time: those that
# do not compare with it go without.
COMPARE_TORCH = ("bench_torch_ranker", "bench_transformer")
if QUICK and Path(sys.argv[0]).stem not in COMPARE_TORCH:
    sys.path.insert(0, str(Path(__file__).with_name("without_torch")))
    os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")])
# Rows of real data that it reads.
QUICK_ROWS = 100


def sized(full: Any, quick: Any) -> Any:
    """How much to do: the first of these, or the second with --quick."""
    return quick if QUICK else full


# Overrides of a config that hashes: a small table is drawn and saved in no time.
SMALL = sized({}, {"tokenizer.n_rows": 512})


def has_data(name: str) -> bool:
    """Whether ../shared/data (or the folder DATA) has this; if not, says so."""
    if not (DATA / name).exists():
        print(f"skipped: {DATA / name} is not there")
    return (DATA / name).exists()


def read_rows(path: Path) -> Iterator[Dict[str, Any]]:
    """The rows of a zipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf8") as lines:
        # Files may be in order of their labels.
        yield from islice(map(json.loads, lines), 0, *sized((None, 1), (20 * QUICK_ROWS, 20)))


def first_rows(name: str, n: Optional[int]) -> Iterator[Dict[str, Any]]:
    """The first rows of ../shared/data; where they are not there, conversations or labelled texts
    of words drawn by Zipf's law."""
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
    """Seconds of CPU time, and what the work gave."""
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
    """What is measured of each, in rounds in which all take turns."""
    found: Dict[Any, List] = {name: [] for name in names}
    for _ in range(n_rounds):
        for name, measured in found.items():
            measured.append(measure(name))
    return found


def medians(found: Mapping[Any, List]) -> Dict[Any, Any]:
    """Of each; without those that are None, None if nothing is left."""
    known = {name: [each for each in values if each is not None] for name, values in found.items()}
    return {name: statistics.median(v) if v else None for name, v in known.items()}


def rival(variable: str, *command: str, folder: Optional[Path] = None, **environment: str) -> Any:
    """What a script prints, JSON in its last line, that the Python runs which an environment
    variable names; None if it names none."""
    python = os.environ.get(variable)
    if not python:
        return None
    known = {**os.environ, **environment}
    ran = subprocess.run(
        [python, *command], cwd=folder, capture_output=True, text=True, check=True, env=known
    )
    return json.loads(ran.stdout.splitlines()[-1])


def parlai(*command: str, **environment: str) -> Any:
    """What a script of ../shared/parlai_bench (or the folder PARLAI_BENCH) prints under
    PARLAI_PYTHON."""
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
    """Items a second that threads do together.

    work (Callable[[int], int]): Given a thread's number, gives how many items it did.
    """
    n_done = [0] * n_threads

    def run(thread: int) -> None:
        stop = time.perf_counter() + seconds
        while time.perf_counter() < stop:
            n_done[thread] += work(thread)

    in_threads(n_threads, run)
    return sum(n_done) / seconds


def arithmetic() -> Callable[[int], float]:
    """So many steps of nothing but arithmetic, without the GIL."""
    from thincdialog.ops.kernels.kernel import kernel

    @kernel
    def compute(n: int) -> float:
        x = 1.0
        for _ in range(n):
            x = x * 1.0000001 + 1e-9
        return x

    return compute
