"""What hogwild workers cost in quality: scores after as many epochs with 1, 2 and 4 workers.

Rankers on the first 5,000 conversations of the Self-dialogue Corpus (the right reply among
100, all test examples), classifiers on CLINC150 (test accuracy), three seeds each; and
the coffee orders of configs/quickstart.cfg, which are generated. Threads, or what
BENCH_EXECUTOR says.

    python tests/benchmarks/bench_hogwild_quality.py [part of a config's name ...]

Workers' gradients are of weights some steps old; what that changes of Adam's settings is in
thincdialog/optimizers/stale_steps.py. No more are at steps at once than there are processors:
with BENCH_AT_ONCE=4, four are, on fewer processors, too.

Real data is left out where ../shared/data is missing.
"""

import gzip
import io
import os
import statistics
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from thincdialog.parallel import n_cores

from thincdialog.runs.train import train
from thincdialog.training import hogwild

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
WORKERS = (1, 2, 4)
SEEDS = (0, 1, 2)
EXECUTOR = os.environ.get("BENCH_EXECUTOR", "thread")
OPS = os.environ.get("BENCH_OPS", "fast")
AT_ONCE = int(os.environ.get("BENCH_AT_ONCE", n_cores()))
# Of the training conversations: 73,000 examples.
N_DIALOGUES = 5_000


def files(source: Path, folder: Path, n_train: Optional[int]) -> Dict[str, str]:
    """Plain files of the splits, the first of the training data only."""
    paths = {}
    for split, name, n in (
        ("train", "train", n_train),
        ("valid", "dev", None),
        ("test", "test", None),
    ):
        path = folder / f"{source.parent.name}-{source.name}-{name}.jsonl"
        with gzip.open(source / f"{split}.jsonl.gz", "rt", encoding="utf-8") as lines:
            path.write_text("".join(islice(lines, n)), encoding="utf-8")
        paths[f"paths.{name}"] = str(path)
    return paths


def works(folder: Path) -> Iterator[Tuple[str, Dict[str, Any], str]]:
    """Configs, overrides and the score to compare."""
    yield "quickstart", {}, "hits@1"
    for names, source, n_train, score in (
        (("ranker", "starspace"), DATA / "self_dialogue", N_DIALOGUES, "hits@1"),
        (("fasttext", "intent"), DATA / "clinc150" / "full", None, "accuracy"),
    ):
        if not source.exists():
            print(f"{', '.join(names)}: left out, {source} is missing")
            continue
        paths = files(source, folder, n_train)
        for name in names:
            # All test examples: of 2,000, a score is uncertain by 0.8 points, more than is lost.
            all_of_them = {"training.eval_every_epochs": 2.0, "evaluation.max_examples": 0}
            yield name, {**paths, **all_of_them}, score


def scores(name: str, n: int, overrides: Dict[str, Any], score: str) -> List[float]:
    """Test scores in percent, one for each seed."""
    found = []
    for seed in SEEDS:
        quiet = io.StringIO()
        asked = {"system.seed": seed, "system.ops": OPS, "training.n_samples": 0}
        result = train(
            ROOT / "configs" / f"{name}.cfg",
            overrides={**asked, "hogwild.workers": n, "hogwild.executor": EXECUTOR, **overrides},
            stdout=quiet,
            stderr=quiet,
        )
        found.append(100 * result.scores["test"][score])
    return found


def main() -> None:
    hogwild.n_cores = lambda: AT_ONCE
    print(
        f"{'config':12}{'workers':>8}{'at once':>8}{'mean':>8}{'to one':>8}{'seconds':>9}   "
        f"each seed ({EXECUTOR})"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, overrides, score in works(Path(folder)):
            if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
                continue
            one = None
            for n in WORKERS:
                began = time.perf_counter()
                found = scores(name, n, overrides, score)
                seconds = (time.perf_counter() - began) / len(SEEDS)
                mean = statistics.mean(found)
                one = mean if one is None else one
                each = ", ".join(f"{value:.2f}" for value in found)
                shown = f"{name:12}{n:8}{min(n, AT_ONCE):8}{mean:8.2f}{mean - one:+8.2f}"
                print(f"{shown}{seconds:9.0f}   {each}", flush=True)


if __name__ == "__main__":
    main()
