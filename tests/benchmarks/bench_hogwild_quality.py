"""Measure what hogwild workers cost in quality: scores with 1, 2, 4 and 8 workers after the same
number of epochs.

Rankers are trained on the first 5,000 conversations of the Self-dialogue Corpus (the right reply
among 100, all test examples), classifiers on CLINC150 (test accuracy), three seeds each, and
configs/quickstart.cfg on its generated coffee orders. Workers are threads.

    python tests/benchmarks/bench_hogwild_quality.py [part of a config's name ...]
    python tests/benchmarks/bench_hogwild_quality.py --off MECHANISM [part of a config's name ...]

With --off, each is trained with and without one mechanism (see OFF in bench_hogwild.py). At most as
many workers compute steps at once as there are processors. With BENCH_AT_ONCE=4, four do, even on
fewer processors. Real data is left out if ../shared/data is missing.

With "--off moments" and intent.cfg, look at the largest weight: now and then, a step that mixes one
worker's first moment with another's second ruins a weight. That happens if a step is many
operations, as with NumPy's ops, which this case uses. Otherwise the ops are the fast ones.
"""

import io
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple
from unittest import mock

import numpy
from bench_hogwild import asked, data, without
from measuring import ROOT, SMALL, has_data, sized

from thincdialog.api import train
from thincdialog.loader.cores import n_cores

WORKERS = sized((1, 2, 4, 8), (2,))
SEEDS = range(int(os.environ.get("BENCH_SEEDS", sized(3, 1))))
QUICK_RUN = {"training.max_steps": 4, "training.min_steps": 0, **SMALL}
AT_ONCE = int(os.environ.get("BENCH_AT_ONCE", n_cores()))
# Number of training conversations. They have 73,000 examples.
N_DIALOGUES = 5_000
ADAM = {"training.optimizer.@optimizers": "Adam.v1"}


def works(folder: Path) -> Iterator[Tuple[str, Dict[str, Any], str]]:
    """Yield each training's name, the overrides of its config, and the score to compare."""
    coffee = sized({}, {f"tasks.coffee.n_{split}": 20 for split in ("train", "dev", "test")})
    yield "quickstart", coffee, "hits@1"
    yield "quickstart, Adam", {**coffee, **ADAM}, "hits@1"
    for names, source, score in (
        (("ranker", "starspace"), "self_dialogue", "hits@1"),
        (("fasttext", "intent"), "clinc150/full", "accuracy"),
    ):
        if not has_data(source):
            continue
        # All test examples: with 2,000, a score is uncertain by 0.8 points, more than the loss.
        overrides: Dict[str, Any] = {"training.eval_every_epochs": 2, "evaluation.max_examples": 0}
        n_train = N_DIALOGUES if score == "hits@1" else None
        for split, key, n in (("train", "train", n_train), ("valid", "dev", None),
                              ("test", "test", None)):  # fmt: skip
            overrides[f"paths.{key}"] = data(folder, f"{source}/{split}.jsonl.gz", n)
        for name in names:
            yield name, overrides, score


def scores(
    name: str, n: int, overrides: Dict[str, Any], score: str, ops: str
) -> Tuple[List[float], float]:
    """Test scores in percent, one for each seed, and the largest of all weights."""
    found, largest = [], 0.0
    for seed in SEEDS:
        settings = {"system.seed": seed, "system.ops": ops, "training.n_samples": 0}
        settings.update(sized({}, QUICK_RUN))
        runner = {"runner.@runners": "thincdialog.Hogwild.v1", "runner.workers": n}
        config = ROOT / "configs" / f"{name.split(',')[0]}.cfg"
        streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        with tempfile.TemporaryDirectory() as output:
            changes = {**settings, **runner, **overrides}
            result = train(config, output=output, overrides=changes, force=True, **streams)
            weights = numpy.load(Path(output) / "model-last" / "weights.npy")
        found.append(100 * result.scores["test"][score])
        largest = max(largest, float(numpy.abs(weights).max()))
    return found, largest


def main() -> None:
    off, words = asked()
    words = words or sized([], ["Adam", "fasttext"])
    head = f"{'config':18}{'workers':>8}{'at once':>8}{'mean':>8}{'to one':>8}{'seconds':>9}"
    print(f"{head}{'largest':>9}   seeds")
    with tempfile.TemporaryDirectory() as folder:
        for name, overrides, score in works(Path(folder)):
            if words and not any(word in name for word in words):
                continue
            one = None
            for n in WORKERS:
                for mechanism in ("", off) if off and n > 1 else ("",):
                    began = time.perf_counter()
                    at_once = mock.patch("thincdialog.runners.hogwild.n_cores", lambda: AT_ONCE)
                    with at_once, without(mechanism):
                        ops = "numpy" if off == "moments" else "fast"
                        found, largest = scores(name, n, overrides, score, ops)
                    seconds = (time.perf_counter() - began) / len(SEEDS)
                    mean = statistics.mean(found)
                    one = mean if one is None else one
                    shown = f"{name:18}{n:8}{min(n, AT_ONCE):8}{mean:8.2f}{mean - one:+8.2f}"
                    each = ", ".join(f"{value:.2f}" for value in found)
                    without_it = f"   without {mechanism}" * bool(mechanism)
                    print(f"{shown}{seconds:9.0f}{largest:9.2f}   {each}{without_it}", flush=True)


if __name__ == "__main__":
    main()
