"""Measure how training scales with hogwild workers, and how pure computing scales here.

In one run, bursts of 1 s and rests of 1 s alternate. Training on 1 worker (without [runner]) and
on 2 (and 4, 8, 16 if there are as many cores) takes turns with pure computing on the same number
of threads, which shares no data and needs no GIL. Printed are medians of the rounds:

    work        examples per second with n workers, divided by those with one
    ceiling     the same ratio for pure computing
    efficiency  work divided by ceiling

    python tests/benchmarks/bench_hogwild.py [part of a name ...]
    python tests/benchmarks/bench_hogwild.py --off MECHANISM [part of a name ...]

With --off, training with and training without one mechanism (see OFF) take turns, and the ratio
of the two is printed: above 1, the mechanism is a gain. For threads, the ratio of examples per CPU
second is printed, too: other work on the machine changes it little, but it does not include
waiting. With "--off nothing", both ratios show the noise. In processes, only "tell" is switched
off.
"""

import io
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple
from unittest import mock

from measuring import ROOT, SMALL, arithmetic, burst, first_rows, sized
from threadpoolctl import threadpool_limits

from thincdialog.api import Experiment, load_config
from thincdialog.ops.rows_apart import RowsApart
from thincdialog.runners import Alone, Hogwild
from thincdialog.training.interruption import Interruption

SECONDS, REST = sized((1.0, 1.0), (0.05, 0.0))
N_ROUNDS = int(os.environ.get("BENCH_ROUNDS", sized(7, 1)))
N_WORKERS = [n for n in (1, 2, 4, 8, 16) if n <= max(2, os.cpu_count() or 1)]

# Mechanism to the names that are replaced when it is off, and their replacements.
OFF: Dict[str, Dict[str, Any]] = {
    "turns": {"thincdialog.runners.hogwild.n_cores": lambda: 1024},
    "ahead": {"thincdialog.runners.worker.stale_settings": lambda settings, n: dict(settings)},
    "apart": {"thincdialog.agents.compiled_steps.RowsApart": lambda: RowsApart(0)},
    "moments": {
        "thincdialog.optimizers.adam.least_second_moment": lambda *_: 0.0,
        "thincdialog.optimizers.row_sparse.RowSparseOptimizer.is_shared": (
            property(lambda self: False, lambda self, value: None)
        ),
    },
    "tell": {"thincdialog.runners.worker.REPORT_SECONDS": 0.0},
}
# The last mechanism, for processes: they run it as --code.
OFF_IN_PROCESSES = """
from thincdialog.runners import worker
worker.REPORT_SECONDS = 0.0
"""


def asked() -> Tuple[str, List[str]]:
    """Return the mechanism of --off ("" without it), and the other words of the command line."""
    words = sys.argv[1:]
    return (words[1], words[2:]) if words[:1] == ["--off"] else ("", words)


one_blas_thread = partial(threadpool_limits, 1, user_api="blas")


@contextmanager
def without(mechanism: str) -> Iterator[None]:
    """A context in which a mechanism is switched off. With "", nothing is."""
    with ExitStack() as stack:
        for name, value in OFF.get(mechanism, {}).items():
            stack.enter_context(mock.patch(name, value))
        yield


class Work:
    """Training that can be continued for a moment at a time."""

    def __init__(
        self, config: Any, overrides: Dict[str, Any], runner: Any, off: str = "", code: Any = None
    ):
        self.experiment, self.runner = Experiment.from_config(config, overrides, code), runner
        self.off = off
        self.n_steps = self.n_epochs = self.n_examples = 0
        self.by_cpu: List[float] = []  # Examples per CPU second of each burst.
        with without(self.off), self.experiment.working():
            teacher = self.experiment.training_split(with_metrics=False)
            self.experiment.initialize(teacher, io.StringIO())
            runner.begin(self.experiment, teacher, Interruption(), lambda line: None)
            runner.start_epoch(0)

    def burst(self, seconds: float) -> float:
        """RETURNS (float): Examples a second."""
        runner, reports = self.runner, []
        # With one worker, too, matrix products take one core.
        with without(self.off), self.experiment.working(), one_blas_thread():
            began, cpu = time.perf_counter(), time.process_time()
            while time.perf_counter() - began < seconds:
                if runner.epoch_done():
                    self.n_epochs += 1
                    runner.start_epoch(self.n_epochs)
                reports += runner.take(self.n_steps + len(reports), float("inf"))
            reports += runner.settle()
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        self.n_steps += len(reports)
        n_examples = sum(report.examples for report in reports)
        self.n_examples += n_examples
        self.by_cpu.append(n_examples / cpu)
        return n_examples / wall


class Spin:
    """Pure computing on several threads."""

    def __init__(self, n: int):
        self.n, self.compute = n, arithmetic()

    def burst(self, seconds: float) -> float:
        """RETURNS (float): Computations a second."""
        with one_blas_thread():
            return burst(self.n, lambda thread: int(self.compute(100_000) > 0), seconds)


# --- what is trained --------------------------------------------------------------------


def data(folder: Path, name: str, n: Optional[int] = None) -> str:
    """Write a file of the first rows of real data, by default of all rows."""
    path = folder / f"{name.replace('/', '_')}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in first_rows(name, n)))
    return str(path)


def parts(folder: Path) -> Iterator[Tuple[str, Any, Dict[str, Any], str]]:
    """Name, config, overrides and executor of each training."""
    talks = data(folder, "self_dialogue/train.jsonl.gz", 12000)
    texts = data(folder, "clinc150/full/train.jsonl.gz", 15000)
    bilstm = load_config(ROOT / "configs" / "ranker.cfg", {}).config
    encoder = {"@models": "thincdialog.BiLSTMEncoder.v1", "width": 128, "dropout": 0.0}
    bilstm["agent"]["model"]["encoder"] = encoder
    for name in sized(("ranker", "BiLSTM", "starspace", "fasttext"), ("ranker",)):
        paths = texts if name == "fasttext" else talks
        config = bilstm if name == "BiLSTM" else ROOT / "configs" / f"{name}.cfg"
        has_ops = name in ("ranker", "BiLSTM")
        ways = (("thread", "numpy"), ("thread", "fast"), ("process", "fast"))
        for executor, ops in sized(ways, ways[2:]):
            if has_ops or ops == "fast":
                overrides = {"paths.train": paths, "paths.dev": paths, "system.ops": ops, **SMALL}
                yield f"{name}, {executor}, {ops} ops", config, overrides, executor


def rounds(works: Dict[Any, Any]) -> Dict[Any, List[float]]:
    """Run bursts of all kinds in turns, round after round."""
    found: Dict[Any, List[float]] = {name: [] for name in works}
    for work in works.values():  # Compiles kernels, tokenizes.
        work.burst(2 * SECONDS)
    for number in range(N_ROUNDS):
        for name, work in list(works.items())[:: 1 if number % 2 else -1]:
            time.sleep(REST)
            found[name].append(work.burst(SECONDS))
    return found


def scale(name: str, config: Any, overrides: Dict[str, Any], executor: str) -> None:
    works: Dict[Any, Any] = {}
    for n in N_WORKERS:
        works["work", n] = Work(config, overrides, Alone() if n == 1 else Hogwild(n, executor))
        works["spin", n] = Spin(n)
    found = rounds(works)

    def over_one(kind: str, n: int) -> float:
        return statistics.median(many / one for many, one in zip(found[kind, n], found[kind, 1]))

    for n in N_WORKERS[1:]:
        work, spin = over_one("work", n), over_one("spin", n)
        rate = statistics.median(found["work", 1])
        print(f"{name:28}{rate:12,.0f}{n:9}{work:7.2f}{spin:9.2f}{work / spin:12.2f}", flush=True)
    for n in N_WORKERS:
        works["work", n].runner.end()


def switch_off(
    off: str, name: str, config: Any, overrides: Dict[str, Any], executor: str, folder: Path
) -> None:
    n, code = 2 * N_WORKERS[-1] if off == "turns" else N_WORKERS[-1], folder / "off.py"
    works = [Work(config, overrides, Hogwild(n, executor))]
    if executor == "process":
        code.write_text(OFF_IN_PROCESSES)
        works.append(Work(config, overrides, Hogwild(n, executor), code=code))
    else:
        works.append(Work(config, overrides, Hogwild(n, executor), off))
    found = rounds(dict(zip(("on", "off"), works)))
    rates = "".join(f"{statistics.median(found[each]):12,.0f}" for each in ("on", "off"))
    shown = ""
    by_cpu = [work.by_cpu[1:] for work in works]
    for on, without_it in (found.values(), by_cpu)[: 1 if executor == "process" else 2]:
        ratios = sorted(a / b for a, b in zip(on, without_it))
        low, middle, high = (ratios[len(ratios) * part // 4] for part in (1, 2, 3))
        shown += f"{middle:8.3f} ({low:.3f} to {high:.3f})"
    print(f"{name:28}{n:3}{rates}{shown}", flush=True)
    for work in works:
        work.runner.end()


def main() -> None:
    off, words = asked()
    print(f"{os.cpu_count()} cores; medians of {N_ROUNDS} rounds")
    if off:
        print(
            f"\n{off + ' on and off':28}{'n':>3}{'on':>12}{'off':>12}{'ratio':>8} (quartiles)"
            f"{'by CPU':>15} (quartiles)"
        )
    else:
        header = f"{'ex/s of 1':>12}{'workers':>9}{'work':>7}{'ceiling':>9}{'efficiency':>12}"
        print(f"\n{'':28}{header}")
    with tempfile.TemporaryDirectory() as folder:
        for name, config, overrides, executor in parts(Path(folder)):
            if words and not any(word in name for word in words):
                continue
            if not off:
                scale(name, config, overrides, executor)
            elif executor == "thread" or off == "tell":
                switch_off(off, name, config, overrides, executor, Path(folder))


if __name__ == "__main__":
    main()
