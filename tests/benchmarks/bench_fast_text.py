"""The fastText-like classifier beside fastText: words a second and accuracy.

The same data (shuffled once for fastText, which reads it in one order; ours is shuffled
every epoch), words, width, rows, bigrams, epochs and learning rate, one thread. A time is
CPU time of a whole training less that of a training of one epoch: no reading, no
vocabulary, no evaluation. Words are counted as fastText counts them, with the label and the
end of each text. The two take turns. fastText is measured if FASTTEXT_PYTHON names the
Python of an environment that has it (PyPI: fasttext-wheel 0.9.2 with numpy < 2); the data
lies in ../shared/data, or where DATA says.

Then two workers beside one: short bursts of training steps take turns with bursts of a
kernel that shares nothing, whose speed-up is the ceiling.

    FASTTEXT_PYTHON=~/fasttext/bin/python python tests/benchmarks/bench_fast_text.py [NAME...]
"""

import gzip
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from thincdialog.parallel import ThreadWorkers
from thincdialog.training.hogwild import LearningWorker, Order
from thincdialog.training.task import split_of

from thincdialog.api import train
from thincdialog.config import load_config, resolve_config
from thincdialog.data.tokenizers import WordTokenizer
from thincdialog.ops.choice import ops_to_train, using_ops
from thincdialog.ops.compiled import load_kernels
from thincdialog.optimizers.shared_state import for_a_worker
from thincdialog.worlds import HogwildWorld

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "fasttext.cfg"
N_REPEATS, SIZE, WIDTH, N_ROWS = 5, 250, 100, 200_000
BURST, REST, N_BURSTS = 0.25, 0.75, 8

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


class Data(NamedTuple):
    """Labelled texts; see ``DATA``."""

    folder: str
    epochs: int
    rate: float
    read: Callable[[Dict[str, Any]], Tuple[str, str]]


def short_text(row: Dict[str, Any]) -> Tuple[str, str]:
    """A text and its label."""
    return row["text"], row["label"]


def dialogue(row: Dict[str, Any]) -> Tuple[str, str]:
    """A long text of few classes, as in ml_datasets: a whole dialogue, and its topic."""
    return " ".join(turn["text"] for turn in row["turns"]), row["topic"]


DATA = {
    "clinc150": Data("clinc150/full", 50, 1.0, short_text),
    "banking77": Data("banking77", 50, 1.0, short_text),
    "dialogues": Data("self_dialogue", 5, 0.5, dialogue),
}


class Files(NamedTuple):
    """A data set as both read it, and what fastText counts as the words of an epoch."""

    train: Path
    test: Path
    train_text: Path
    test_text: Path
    n_examples: int
    n_words: int


def prepare(name: str, folder: Path) -> Optional[Files]:
    """Write the data for both; None if it is not there."""
    data = DATA[name]
    source = Path(os.environ.get("DATA", ROOT.parent / "shared" / "data")) / data.folder
    if not source.is_dir():
        return None
    split = WordTokenizer().split
    paths: Dict[str, Path] = {}
    n_examples = n_words = 0
    for part in ("test", "train"):
        with gzip.open(source / f"{part}.jsonl.gz", "rt", encoding="utf8") as file:
            rows = [data.read(json.loads(line)) for line in file]
        random.Random(0).shuffle(rows)
        words = [split(text) for text, _ in rows]
        ours = paths[part] = folder / f"{name}.{part}.jsonl"
        theirs = paths[f"{part}_text"] = folder / f"{name}.{part}.txt"
        lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
        ours.write_text("\n".join(lines) + "\n", encoding="utf8")
        labels = [label.replace(" ", "_") for _, label in rows]
        lines = [f"__label__{label} {' '.join(each)}" for label, each in zip(labels, words)]
        theirs.write_text("\n".join(lines) + "\n", encoding="utf8")
        n_examples, n_words = len(rows), sum(len(each) + 2 for each in words)
    return Files(**paths, n_examples=n_examples, n_words=n_words)


def settings(name: str, files: Files, epochs: int, seed: int = 0) -> Dict[str, Any]:
    """Changes of the config."""
    return {
        "system.seed": seed,
        "paths.train": str(files.train),
        "paths.test": str(files.test),
        "tokenizer.n_rows": N_ROWS,
        "agent.model.width": WIDTH,
        "world.batcher.size": SIZE,
        "training.max_steps": epochs * -(-files.n_examples // SIZE),
        "training.eval_every_epochs": 0,
        "training.optimizer.learn_rate.initial_rate": DATA[name].rate,
    }


def ours(name: str, files: Files, seed: int) -> Tuple[float, float]:
    """CPU seconds an epoch, and accuracy."""

    def run(epochs: int) -> Tuple[float, Any]:
        started = time.process_time()
        changes = settings(name, files, epochs, seed)
        result = train(CONFIG, overrides=changes, stdout=io.StringIO(), stderr=io.StringIO())
        return time.process_time() - started, result

    epochs = DATA[name].epochs
    short, _ = run(1)
    long, result = run(epochs)
    return (long - short) / (epochs - 1), result.scores["test"]["accuracy"]


def fasttexts(name: str, files: Files, seed: int) -> Optional[Tuple[float, float]]:
    """The same of fastText; None if it is not there."""
    python = os.environ.get("FASTTEXT_PYTHON")
    if not python:
        return None
    data = DATA[name]
    numbers = map(str, (data.epochs, data.rate, WIDTH, N_ROWS, seed))
    command = [python, "-c", FASTTEXT, str(files.train_text), str(files.test_text), *numbers]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, accuracy = json.loads(done.stdout.splitlines()[-1])
    return seconds, accuracy


# --- two workers beside one ---------------------------------------------------------


class Training:
    """Steps of some workers on the same weights, in bursts."""

    def __init__(self, parts: Dict[str, Any], teacher: Any, agent: Any, n_workers: int):
        optimizer = parts["training"]["optimizer"]
        self.step = self.epoch = 0

        def make_worker(number: int) -> LearningWorker:
            replica = agent.replica() if n_workers > 1 else agent
            world = parts["world"](teacher.share_of(number, n_workers), replica)
            return LearningWorker(number, world, replica, for_a_worker(optimizer), 0, 1)

        self.world = HogwildWorld(ThreadWorkers(make_worker, n_workers))
        self.world.start_epoch(0, 0)

    def burst(self) -> float:
        """Examples a second."""
        n_examples = 0
        started = time.perf_counter()
        while time.perf_counter() < started + BURST:
            if self.world.epoch_done():
                self.epoch += 1
                self.world.start_epoch(self.epoch, 0)
            self.step += 1
            self.world.parley(Order(self.step, {"learn_rate": 0.1}))
            n_examples += sum(learnt.examples for learnt in self.world.finished())
        self.world.drain()
        n_examples += sum(learnt.examples for learnt in self.world.finished())
        return n_examples / (time.perf_counter() - started)


def pure_burst(n_threads: int) -> float:
    """Runs a second of a kernel that shares nothing."""
    softmax = load_kernels("rows").softmax
    counts = [0] * n_threads
    started = time.perf_counter()

    def work(number: int) -> None:
        X = np.ones((256, 512), dtype="f")
        Y = np.empty_like(X)
        while time.perf_counter() < started + BURST:
            softmax(X, 1.0, Y)
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def scaling(name: str, files: Files) -> None:
    """Print the speed-ups of two workers."""
    checked = load_config(CONFIG, settings(name, files, DATA[name].epochs))
    with using_ops(ops_to_train(checked.interpolated["system"])):
        parts = resolve_config(checked)
        teacher, agent = split_of(checked, parts, "train", training=True), parts["agent"]
        agent.initialize(teacher, tokenizer=parts["tokenizer"])
        one, two = (Training(parts, teacher, agent, n) for n in (1, 2))
        kinds: Dict[str, Callable[[], float]] = {
            "one": one.burst,
            "two": two.burst,
            "pure one": lambda: pure_burst(1),
            "pure two": lambda: pure_burst(2),
        }
        rates: Dict[str, List[float]] = {kind: [] for kind in kinds}
        for repeat in range(N_BURSTS + 1):
            for kind, burst in kinds.items():
                rate = burst()
                if repeat:  # The first one reads and compiles.
                    rates[kind].append(rate)
                time.sleep(REST)
        for training in (one, two):
            training.world.shutdown()
    pairs = [("one", "two"), ("pure one", "pure two")]
    speed_up, ceiling = (
        statistics.median(b / a for a, b in zip(rates[first], rates[second]))
        for first, second in pairs
    )
    print(
        f"{name}, 2 threads over 1: {speed_up:.2f}, ceiling {ceiling:.2f}, "
        f"efficiency {speed_up / ceiling:.2f}"
    )


def compare(name: str, files: Files) -> bool:
    """Print words a second, and mean accuracy of the runs' seeds, of both."""
    times: List[float] = []
    theirs: List[float] = []
    accuracies: List[float] = []
    their_accuracies: List[float] = []
    for seed in range(N_REPEATS):
        seconds, reached = ours(name, files, seed)
        times.append(seconds)
        accuracies.append(reached)
        measured = fasttexts(name, files, seed)
        if measured is not None:
            theirs.append(measured[0])
            their_accuracies.append(measured[1])
    accuracy = statistics.mean(accuracies)
    speed = files.n_words / statistics.median(times)
    line = f"{name:10} {speed / 1e6:6.2f} M words/s, accuracy {accuracy:.4f}"
    if not theirs:
        print(f"{line}; fastText: not measured, name its Python in FASTTEXT_PYTHON")
        return True
    reference = files.n_words / statistics.median(theirs)
    their_accuracy = statistics.mean(their_accuracies)
    print(
        f"{line}; fastText {reference / 1e6:6.2f} M words/s, accuracy {their_accuracy:.4f}; "
        f"x fastText {speed / reference:.2f}",
        flush=True,
    )
    return speed >= 0.8 * reference and accuracy >= their_accuracy - 0.003


def main() -> int:
    """Run all, or those data sets that are named."""
    are_good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or DATA:
            files = prepare(name, Path(folder))
            if files is None:
                print(f"{name}: its data is not there")
                continue
            are_good &= compare(name, files)
            scaling(name, files)
    return 0 if are_good else 1


if __name__ == "__main__":
    sys.exit(main())
