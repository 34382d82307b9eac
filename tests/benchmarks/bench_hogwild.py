"""How training scales with hogwild workers, beside how anything scales here.

In one run, bursts of 1 s with rests of 1 s take turns: training on 1 worker (without
[runner]), on 2 (on 4, 8, 16 where there are as many cores), and pure computing, which shares
nothing and needs no GIL, on as many threads. Medians of rounds of

    work        examples a second on n workers over those of one
    ceiling     the same of pure computing
    efficiency  work over ceiling

    python tests/benchmarks/bench_hogwild.py [part of a name ...]
    python tests/benchmarks/bench_hogwild.py --off MECHANISM [part of a name ...]

With --off, training with and without one mechanism (see OFF) takes turns, and the ratio of the
two is printed: above 1, the mechanism is a gain. The picture of 4 and more cores is
output/benchmarks/hogwild.png.
"""

import io
import json
import os
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple
from unittest import mock

import numpy
from measuring import DATA, ROOT, read_rows

from thincdialog.api import Experiment, load_config
from thincdialog.ops.rows_apart import RowsApart
from thincdialog.runners import Alone, Hogwild
from thincdialog.runners.crew import side_by_side
from thincdialog.training.interruption import Interruption

PICTURE = ROOT / "output" / "benchmarks" / "hogwild.png"
SECONDS, REST, N_ROUNDS = 1.0, 1.0, int(os.environ.get("BENCH_ROUNDS", "7"))
N_WORKERS = [n for n in (1, 2, 4, 8, 16) if n <= max(2, os.cpu_count() or 1)]


# Mechanism to what is in its place when it is off: names, and their values.
OFF: Dict[str, Dict[str, Any]] = {
    "turns": {"thincdialog.runners.hogwild.n_cores": lambda: 1024},
    "ahead": {"thincdialog.runners.worker.stale_settings": lambda settings, n: dict(settings)},
    "apart": {"thincdialog.agents.compiled_steps.RowsApart": lambda: RowsApart(0)},
    "moments": {
        "thincdialog.optimizers.shared_moments.SharedMoments._in_blocks": (
            lambda self, make_step, *step: make_step(*step)
        ),
        "thincdialog.optimizers.row_sparse.RowSparseOptimizer.is_shared": (
            property(lambda self: False, lambda self, value: None)
        ),
    },
    "switch": {"thincdialog.runners.crew.SWITCH_SECONDS": 0.005},
    "tell": {"thincdialog.runners.worker.TELL_SECONDS": 0.0},
}


@contextmanager
def without(mechanism: str) -> Iterator[None]:
    """A stretch with a mechanism switched off; none, if it is ""."""
    with ExitStack() as stack:
        for name, value in OFF.get(mechanism, {}).items():
            stack.enter_context(mock.patch(name, value))
        yield


class Work:
    """Training that can be let go for a moment."""

    def __init__(self, config: Any, overrides: Dict[str, Any], runner: Any, off: str = ""):
        self.experiment, self.runner = Experiment.from_config(config, overrides), runner
        self.off = off
        self.n_steps = self.n_epochs = 0
        with without(self.off), self.experiment.working():
            teacher = self.experiment.training_split()
            self.experiment.initialize(teacher, io.StringIO())
            runner.begin(self.experiment, teacher, Interruption(), lambda line: None)
            runner.start_epoch(0)

    def burst(self, seconds: float) -> float:
        """RETURNS (float): Examples a second."""
        runner, reports = self.runner, []
        # Of one worker, too, products of matrices take one core.
        with without(self.off), self.experiment.working(), side_by_side():
            began = time.perf_counter()
            while time.perf_counter() - began < seconds:
                if runner.epoch_done():
                    self.n_epochs += 1
                    runner.start_epoch(self.n_epochs)
                reports += runner.take(self.n_steps + len(reports), float("inf"))
            reports += runner.settle()
            wall = time.perf_counter() - began
        self.n_steps += len(reports)
        return sum(report.examples for report in reports) / wall


class Spin:
    """Pure computing on some threads, in their cores' own caches."""

    def __init__(self, n: int):
        self.n, self.pool = n, ThreadPoolExecutor(n)

    def burst(self, seconds: float) -> float:
        """RETURNS (float): Products of matrices a second."""

        def spin(_: int) -> int:
            a, n_done, until = numpy.full((96, 96), 0.01, "f"), 0, time.perf_counter() + seconds
            while time.perf_counter() < until:
                for _ in range(50):
                    numpy.matmul(a, a, out=numpy.empty_like(a))
                n_done += 50
            return n_done

        with side_by_side():
            return sum(self.pool.map(spin, range(self.n))) / seconds


# --- what is trained --------------------------------------------------------------------


def data(folder: Path, name: str, source: Path, n: int, make: Callable[..., Any]) -> str:
    """The first lines of real data, or of words drawn by Zipf's law."""
    path, rng = folder / f"{name}.jsonl", random.Random(0)

    def text() -> str:
        return " ".join(f"w{int(20000 ** rng.random())}" for _ in range(rng.randint(3, 17)))

    rows = islice(read_rows(source), n) if source.exists() else (make(text) for _ in range(n))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def parts(folder: Path) -> Iterator[Tuple[str, Any, Dict[str, Any], str]]:
    """Name, config, overrides and executor of each training."""
    talks = data(folder, "talks", DATA / "self_dialogue" / "train.jsonl.gz", 12000,
                 lambda text: {"turns": [{"speaker": "ab"[n % 2], "text": text()}
                                         for n in range(16)]})  # fmt: skip
    texts = data(folder, "texts", DATA / "clinc150" / "full" / "train.jsonl.gz", 15000,
                 lambda text: {"text": text(), "label": text()[:2]})  # fmt: skip
    bilstm = load_config(ROOT / "configs" / "ranker.cfg", {}).config
    encoder = {"@models": "thincdialog.BiLSTMEncoder.v1", "width": 128, "dropout": 0.0}
    bilstm["agent"]["model"]["encoder"] = encoder
    for name, paths in (("ranker", talks), ("BiLSTM", talks), ("starspace", talks),
                        ("fasttext", texts)):  # fmt: skip
        config = bilstm if name == "BiLSTM" else ROOT / "configs" / f"{name}.cfg"
        has_ops = name in ("ranker", "BiLSTM")
        for executor, ops in (("thread", "numpy"), ("thread", "fast"), ("process", "fast")):
            if has_ops or ops == "fast":
                overrides = {"paths.train": paths, "paths.dev": paths, "system.ops": ops}
                yield f"{name}, {executor}, {ops} ops", config, overrides, executor


def rounds(works: Dict[Any, Any]) -> Dict[Any, List[float]]:
    """Bursts of all kinds, one after the other, round for round."""
    found: Dict[Any, List[float]] = {name: [] for name in works}
    for work in works.values():  # Compiles kernels, tokenizes.
        work.burst(2 * SECONDS)
    for _ in range(N_ROUNDS):
        for name, work in works.items():
            time.sleep(REST)
            found[name].append(work.burst(SECONDS))
    return found


def scale(name: str, config: Any, overrides: Dict[str, Any], executor: str) -> Dict[int, float]:
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
    return {n: over_one("work", n) for n in N_WORKERS}


def switch_off(off: str, name: str, config: Any, overrides: Dict[str, Any]) -> None:
    n = 2 * N_WORKERS[-1] if off == "turns" else N_WORKERS[-1]
    with_it = Work(config, overrides, Hogwild(n, "thread"))
    found = rounds({"on": with_it, "off": Work(config, overrides, Hogwild(n, "thread"), off)})
    ratios = sorted(on / off for on, off in zip(found["on"], found["off"]))
    low, middle, high = (ratios[len(ratios) * part // 4] for part in (1, 2, 3))
    rates = "".join(f"{statistics.median(found[each]):12,.0f}" for each in ("on", "off"))
    print(f"{name:28}{n:3}{rates}{middle:8.3f}   ({low:.3f} to {high:.3f})", flush=True)


def draw(lines: Dict[str, Dict[int, float]]) -> None:
    """Save a picture of speed-ups over one worker."""
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(9, 6.5), layout="constrained")
    for name, speedups in lines.items():
        axis.plot(list(speedups), list(speedups.values()), marker="o", label=name)
    axis.set(xlabel="workers", ylabel="examples a second, over one worker")
    axis.legend(frameon=False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    print(f"\n{PICTURE}")


def main() -> None:
    words = sys.argv[1:]
    off = words.pop(1) if words[:1] == ["--off"] else ""
    words = words[1:] if off else words
    print(f"{os.cpu_count()} cores; medians of {N_ROUNDS} rounds")
    if off:
        print(f"\n{off + ' on and off':28}{'n':>3}{'on':>12}{'off':>12}{'ratio':>8}   (quartiles)")
    else:
        header = f"{'ex/s of 1':>12}{'workers':>9}{'work':>7}{'ceiling':>9}{'efficiency':>12}"
        print(f"\n{'':28}{header}")
    lines = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, config, overrides, executor in parts(Path(folder)):
            if words and not any(word in name for word in words):
                continue
            if not off:
                lines[name] = scale(name, config, overrides, executor)
            elif executor == "thread":
                switch_off(off, name, config, overrides)
    if lines and N_WORKERS[-1] >= 4:
        draw(lines)


if __name__ == "__main__":
    main()
