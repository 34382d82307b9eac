"""How training scales with hogwild workers, beside how anything scales here.

In one run, bursts of 0.3 s with rests of 1.5 s take turns: the work on 1 worker, on 2 (on
4, 8, 16 where there are as many cores), and pure computing, which shares nothing and needs
no GIL, on as many. Medians of rounds of

    work        examples a second on n workers over those of a run without [hogwild]
    ceiling     the same of pure computing
    efficiency  work over ceiling
    apart       the same of as many trainings that share nothing, each in a process of its own:
                what this work, with its caches and its memory, can gain here at all
    per CPU     examples per second of CPU time, on n workers over one: contention
    waiting     share of the workers' time that they waited for something else than a core
                (the GIL, an order), on n workers

Where others use the cores, too, the ceiling is low, and so is what workers can lose to the
GIL while they have no core anyway: then efficiency flatters, and "waiting" says more.

    python tests/benchmarks/bench_hogwild.py [part of a name ...]

The picture of 4 and more cores is output/benchmarks/hogwild.png.
"""

import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks import hogwild_works as works  # noqa: E402
from tests.benchmarks.hogwild_picture import draw  # noqa: E402

SECONDS, REST, N_ROUNDS = 0.3, 1.5, int(os.environ.get("BENCH_ROUNDS", "7"))
N_WORKERS = [n for n in (1, 2, 4, 8, 16) if n <= max(2, os.cpu_count() or 1)]
MANY = {"thread": "threads", "process": "processes"}
PICTURE = ROOT / "output" / "benchmarks" / "hogwild.png"


class Part(NamedTuple):
    """Something to train.

    config (Any): A path, or a config.
    """

    name: str
    config: Any
    executor: str
    overrides: Dict[str, Any]


class Scaling(NamedTuple):
    """What came of it, by number of workers; medians of ratios to a run without
    [hogwild]."""

    work: Dict[int, float]
    ceiling: Dict[int, float]
    efficiency: Dict[int, float]
    apart: Dict[int, float]
    per_cpu: Dict[int, float]
    waiting: Dict[int, float]


def parts(folder: Path, has_numba: bool) -> List[Part]:
    dialogues, of_what = works.conversations(folder)
    labelled, of_which = works.labelled_texts(folder)
    print(f"Data: {of_what}; {of_which}")
    paths = {"paths.train": str(dialogues), "paths.dev": str(dialogues)}
    texts = {"paths.train": str(labelled), "paths.dev": str(labelled)}
    found = []
    for name, config in (("ranker.cfg", works.CONFIGS / "ranker.cfg"), ("BiLSTM", works.bilstm())):
        for executor, ops in (("thread", "numpy"), ("thread", "fast"), ("process", "fast")):
            if has_numba or ops == "numpy":
                overrides = {**paths, "system.ops": ops}
                found.append(
                    Part(f"{name}, {MANY[executor]}, {ops} ops", config, executor, overrides)
                )
    for name, overrides in (("starspace.cfg", paths), ("fasttext.cfg", texts)):
        path = works.CONFIGS / name
        if not (has_numba and path.exists()):
            print(f"{name}: left out, {'numba' if path.exists() else 'the config'} is missing")
            continue
        for executor in ("thread", "process"):
            found.append(Part(f"{name}, {MANY[executor]}", path, executor, overrides))
    if not has_numba:
        print("fast ops: left out, numba is missing")
    return found


def measure(part: Part) -> Scaling:
    """Bursts of all kinds, one after the other, round for round."""
    found: Dict[Any, List[works.Burst]] = {}
    with ExitStack() as stack:
        teams: Dict[Any, Any] = {}
        alone = [
            stack.enter_context(closing(works.train(part.config, "process", 1, part.overrides)))
            for _ in range(N_WORKERS[-1])
        ]
        for n in N_WORKERS:
            work = (
                works.alone(part.config, part.overrides)
                if n == 1
                else works.train(part.config, part.executor, n, part.overrides)
            )
            teams["work", n] = stack.enter_context(closing(work))
            teams["apart", n] = works.Apart(alone[:n])
            teams["spin", n] = stack.enter_context(closing(works.spin(part.executor, n)))
        for each in teams.values():  # Compiles kernels, tokenizes.
            each.burst(1.0)
        for _ in range(N_ROUNDS):
            for name, team in teams.items():
                time.sleep(REST)
                found.setdefault(name, []).append(team.burst(SECONDS))

    def over_one(kind: str, field: str, n: int) -> List[float]:
        return [
            getattr(many, field) / getattr(one, field)
            for many, one in zip(found[kind, n], found[kind, 1])
        ]

    def median(values: Any) -> float:
        return statistics.median(values)

    rates = median(burst.rate for burst in found["work", 1])
    cpu = median(burst.per_cpu for burst in found["work", 1])
    print(f"{part.name:34}{rates:11,.0f}{cpu:11,.0f}", end="")
    work = {n: over_one("work", "rate", n) for n in N_WORKERS}
    ceiling = {n: over_one("spin", "rate", n) for n in N_WORKERS}
    apart = {n: median(over_one("apart", "rate", n)) for n in N_WORKERS}
    return Scaling(
        {n: median(work[n]) for n in N_WORKERS},
        {n: median(ceiling[n]) for n in N_WORKERS},
        {n: median(work[n]) / median(ceiling[n]) for n in N_WORKERS},
        apart,
        {n: median(over_one("work", "per_cpu", n)) for n in N_WORKERS},
        {n: median(burst.waiting for burst in found["work", n]) for n in N_WORKERS},
    )


def main() -> None:
    try:
        import numba  # noqa: F401
    except ImportError:
        has_numba = False
    else:
        has_numba = True
    if not Path("/proc/self/schedstat").exists():
        print("left out: CPU time of threads comes from Linux's /proc")
        return
    with tempfile.TemporaryDirectory() as folder:
        chosen = [
            part
            for part in parts(Path(folder), has_numba)
            if not sys.argv[1:] or any(word in part.name for word in sys.argv[1:])
        ]
        print(f"{os.cpu_count()} cores; medians of {N_ROUNDS} rounds")
        print(
            f"\n{'':34}{'ex/s of 1':>11}{'ex/CPU-s':>11}{'workers':>9}{'work':>7}{'ceiling':>9}"
            f"{'efficiency':>12}{'apart':>7}{'per CPU':>9}{'waiting':>9}"
        )
        scalings = {}
        for part in chosen:
            scaling = scalings[part.name] = measure(part)
            for n in N_WORKERS[1:]:
                print(
                    f"{' ' * (n > 2) * 56}{n:9}{scaling.work[n]:7.2f}{scaling.ceiling[n]:9.2f}"
                    f"{scaling.efficiency[n]:12.2f}{scaling.apart[n]:7.2f}{scaling.per_cpu[n]:9.2f}"
                    f"{scaling.waiting[n]:9.0%}",
                    flush=True,
                )
    if N_WORKERS[-1] >= 4:
        lines = {name: scaling.work for name, scaling in scalings.items()}
        ceilings = [scaling.ceiling for scaling in scalings.values()]
        ceiling = {n: statistics.median(each[n] for each in ceilings) for n in N_WORKERS}
        draw(PICTURE, lines, ceiling)
        print(f"\n{PICTURE}")


if __name__ == "__main__":
    main()
