"""What hogwild workers cost in quality: scores after as many epochs with 1, 2 and 4 workers.

Rankers on the first 5,000 conversations of the Self-dialogue Corpus (the right reply among
100, test, 2,000 examples), classifiers on CLINC150 (test accuracy), three seeds each; and
the coffee orders of configs/quickstart.cfg, which are generated. Threads.

    python tests/benchmarks/bench_hogwild_quality.py [part of a config's name ...]

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

from thincdialog.training.train import train

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
N_WORKERS, SEEDS = (1, 2, 4), (0, 1, 2)
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
            yield name, {**paths, "training.eval_every_epochs": 2.0}, score


def main() -> None:
    ops = os.environ.get("BENCH_OPS", "fast")
    print(f"{'config':14}{'workers':>8}{'mean':>9}{'to one':>9}{'seconds':>9}   each seed")
    with tempfile.TemporaryDirectory() as folder:
        for name, overrides, score in works(Path(folder)):
            if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
                continue
            one = 0.0
            for n in N_WORKERS:
                found: List[float] = []
                began = time.perf_counter()
                for seed in SEEDS:
                    asked = {"system.seed": seed, "system.ops": ops, "training.n_samples": 0}
                    asked |= {"hogwild.workers": n, **overrides}
                    quiet = io.StringIO()
                    result = train(
                        ROOT / "configs" / f"{name}.cfg",
                        overrides=asked,
                        stdout=quiet,
                        stderr=quiet,
                    )
                    found.append(100 * result.scores["test"][score])
                mean = statistics.mean(found)
                one = one or mean
                seconds = (time.perf_counter() - began) / len(SEEDS)
                each = ", ".join(f"{value:.2f}" for value in found)
                print(f"{name:14}{n:8}{mean:9.2f}{mean - one:+9.2f}{seconds:9.0f}   {each}")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
