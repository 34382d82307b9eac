"""Compare the fastText-like classifier with fastText: words per second and accuracy.

Both get the same data, words, width, rows, bigrams, epochs and learning rate, and one thread.
fastText reads the data in one order, so it is shuffled once for fastText; ours is shuffled every
epoch. A time is the CPU time of a whole training run minus that of a run of one epoch, so it
includes no reading, no vocabulary and no evaluation. Words are counted as fastText counts them:
with the label and the end of each text. The two take turns. fastText is measured if
FASTTEXT_PYTHON names the Python of an environment that has it (PyPI: fasttext-wheel 0.9.2 with
numpy < 2). The data is in ../shared/data, or in the folder DATA.

bench_hogwild.py measures the gain of several workers.

    FASTTEXT_PYTHON=~/fasttext/bin/python python tests/benchmarks/bench_fast_text.py [NAME...]
"""

import io
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

from measuring import DATA, ROOT, cpu_seconds, has_data, medians, read_rows, rival, sized

from thincdialog.api import train
from thincdialog.data.tokenizers import WordTokenizer

CONFIG = ROOT / "configs" / "fasttext.cfg"
SIZE, WIDTH, N_REPEATS, N_ROWS = 250, 100, *sized((5, 200_000), (1, 1000))

FASTTEXT = """
import json, sys, time, fasttext
train, test, epochs, rate, width, n_rows, seed = sys.argv[1:]
def run(epochs):
    started = time.process_time()
    model = fasttext.train_supervised(
        train, epoch=epochs, lr=float(rate), dim=int(width), wordNgrams=2, bucket=int(n_rows),
        minCount=1, minn=0, maxn=0, thread=1, verbose=0, seed=int(seed))
    return time.process_time() - started, model
short, _ = run(1)
long, model = run(int(epochs))
print(json.dumps([(long - short) / (int(epochs) - 1), model.test(test)[1]]))
"""

# Data set: its folder, epochs, and learning rate.
CORPORA = {
    "clinc150": ("clinc150/full", sized(50, 2), 1.0),
    "banking77": ("banking77", sized(50, 2), 1.0),
    "dialogues": ("self_dialogue", sized(5, 2), 0.5),
}


def labelled(row: Dict[str, Any]) -> Tuple[str, str]:
    """Return a text and its label. In a row like those of ml_datasets (long texts, few classes),
    these are the whole dialogue and its topic."""
    if "turns" in row:
        return " ".join(turn["text"] for turn in row["turns"]), row["topic"]
    return row["text"], row["label"]


def prepare(source: Path, folder: Path) -> Tuple[int, int]:
    """Write train and test files for both: .jsonl for ours, .txt for fastText.

    RETURNS (Tuple[int, int]): The training examples, and their words as fastText counts them.
    """
    split = WordTokenizer().split
    for part in ("test", "train"):
        rows = list(map(labelled, read_rows(source / f"{part}.jsonl.gz")))
        random.Random(0).shuffle(rows)
        words = [split(text) for text, _ in rows]
        ours = [json.dumps({"text": text, "label": label}) for text, label in rows]
        labels = [f"__label__{label.replace(' ', '_')}" for _, label in rows]
        theirs = [" ".join([label, *each]) for label, each in zip(labels, words)]
        for ending, lines in (("jsonl", ours), ("txt", theirs)):
            (folder / f"{part}.{ending}").write_text("\n".join([*lines, ""]), encoding="utf8")
    return len(rows), sum(len(each) + 2 for each in words)


def ours(folder: Path, epochs: int, rate: float, n_examples: int, seed: int) -> Any:
    """Return CPU seconds per epoch, and accuracy."""

    def run(epochs: int) -> Tuple[float, Any]:
        changes = {
            "system.seed": seed,
            "paths.train": str(folder / "train.jsonl"),
            "paths.test": str(folder / "test.jsonl"),
            "tokenizer.n_rows": N_ROWS,
            "agent.model.width": WIDTH,
            "world.batcher.size": SIZE,
            "training.max_steps": epochs * -(-n_examples // SIZE),
            "training.eval_every_epochs": 0,
            "training.optimizer.learn_rate.initial_rate": rate,
            "runner.workers": 1,
        }
        silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        return cpu_seconds(lambda: train(CONFIG, overrides=changes, **silent))

    short, _ = run(1)
    long, result = run(epochs)
    return (long - short) / (epochs - 1), result.scores["test"]["accuracy"]


def compare(name: str, folder: Path) -> None:
    """Print words per second, and the mean accuracy over the seeds, for both."""
    where, epochs, rate = CORPORA[name]
    if not has_data(where):
        return
    n_examples, n_words = prepare(DATA / where, folder)
    found: Dict[str, List[Any]] = {"ours": [], "fastText": []}
    texts = folder / "train.txt", folder / "test.txt"
    for seed in range(N_REPEATS):
        found["ours"].append(ours(folder, epochs, rate, n_examples, seed))
        given = (*texts, epochs, rate, WIDTH, N_ROWS, seed)
        found["fastText"].append(rival("FASTTEXT_PYTHON", "-c", FASTTEXT, *map(str, given)))
    times = medians({who: [run and run[0] for run in runs] for who, runs in found.items()})
    known = {who: runs for who, runs in found.items() if runs[0]}
    accuracy = {who: statistics.mean(run[1] for run in runs) for who, runs in known.items()}
    speed = n_words / times["ours"]
    line = f"{name:10} {speed / 1e6:6.2f} M words/s, accuracy {accuracy['ours']:.4f}"
    theirs = "not measured, name its Python in FASTTEXT_PYTHON"
    if times["fastText"] is not None:
        reference = n_words / times["fastText"]
        theirs = f"{reference / 1e6:.2f} M words/s, accuracy {accuracy['fastText']:.4f}"
        theirs += f"; x fastText {speed / reference:.2f}"
    print(f"{line}; fastText: {theirs}", flush=True)


def main() -> None:
    """Compare the data sets that the command line names, or all of them."""
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or CORPORA:
            compare(name, Path(folder))


if __name__ == "__main__":
    main()
