"""Training rankers on texts of very different lengths: batches in file order, and batches
within a budget of words that hold as many cells on average.

4,000 pairs of a context and a reply, lengths lognormal with median 12, up to 200 words:
the corpus of ../shared/parlai_bench/gen_skewed.py, word for word. Two encoders: attention
that computes all cells of its rectangles (padded_attention.py), and our BiLSTM, which
computes no padding: there file order wastes steps, as many as its longest row has words.

Beside it, if PARLAI_PYTHON names the Python of an environment that has ParlAI 1.7.2, its
transformer ranker of about as many weights with dynamic batching, on the same pairs
(PARLAI_BENCH: a folder that can be written, with bench_dynb.py, common.py and the files
that gen_skewed.py makes). All take turns; examples per CPU second, one thread.

    PARLAI_PYTHON=~/parlai/bin/python PARLAI_BENCH=~/parlai_bench \
        python tests/benchmarks/bench_batching_training.py
"""

import itertools
import json
import math
import os
import random
import statistics
import subprocess
import time
from typing import Callable, Dict, List

from padded_attention import attention_encoder
from thinc.api import Adam, Model

from thincdialog.agents.ranker import RankerAgent
from thincdialog.batchers import Batcher, Batchsort, Fixed, Words
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.bilstm_encoder import BiLSTMEncoder
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.registry import registry
from thincdialog.teachers import IterableTeacher
from thincdialog.worlds.batch_world import batch_world

tokenizer = registry.tokenizers.get("thincdialog.Words.v1")
N_EXAMPLES, N_REPEATS = 4000, 5


def skewed_pairs():
    """The corpus: 4,000 pairs of texts."""
    rng = random.Random(1234)
    words = range(1000)
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in words))

    def length():
        return max(1, min(200, round(rng.lognormvariate(math.log(12), 0.8))))

    for _ in range(N_EXAMPLES):
        n_words, n_label = length(), length()
        text = rng.choices(words, cum_weights=weights, k=n_words)
        label = [(text[place % n_words] + 1) % 1000 for place in range(n_label)]
        yield tuple(" ".join(f"w{word}" for word in part) for part in (text, label))


class Run:
    """A ranker, and epochs of it in batches of one kind.

    encoder (Callable): Makes its encoder.
    """

    def __init__(self, pairs, batcher: Batcher, encoder: Callable[[], Model]):
        teacher = IterableTeacher({"train": pairs}).for_split("train", training=True)
        with using_ops(get_dialog_ops(-1)):
            self.agent = RankerAgent(
                BiEncoder(encoder()), history_size=1, max_context=200, max_label=200
            )
            self.agent.initialize(teacher, tokenizer=tokenizer(), seed=0)
        self.world = batch_world(teacher, self.agent, batcher)
        self.optimizer = Adam(0.001)
        self.rates: List[float] = []
        self.n_batches = self.n_cells = self.n_words = 0

    def epoch(self, number: int) -> None:
        """One pass, timed."""
        agent, world = self.agent, self.world
        world.start_epoch(number, 0)
        agent.reset_metrics()
        self.n_batches = self.n_cells = self.n_words = 0
        seconds = 0.0
        with using_ops(get_dialog_ops(-1)):
            while not world.epoch_done():
                started = time.process_time()
                agent.seed(0, self.n_batches, 0)
                world.parley()
                agent.update(self.optimizer)
                seconds += time.process_time() - started
                self._count(world.acts[0])
        self.rates.append(N_EXAMPLES / seconds)

    def _count(self, messages) -> None:
        lengths = [(len(m["text"].split()), len(m["labels"][0].split())) for m in messages]
        self.n_batches += 1
        self.n_words += sum(map(sum, lengths))
        self.n_cells += len(lengths) * sum(map(max, zip(*lengths)))

    @property
    def cells_of_a_batch(self) -> float:
        return self.n_cells / self.n_batches


def bilstm(width: int) -> Callable[[], Model]:
    return lambda: BiLSTMEncoder(width=width, dropout=0.0)


def attention(width: int) -> Callable[[], Model]:
    return lambda: attention_encoder(width, depth=2)


def same_cells(pairs, encoder, cells: float) -> Run:
    """Batches within the budget whose batches hold so many cells on average."""
    budget = cells
    while True:
        run = Run(pairs, Words(round(budget)), encoder)
        run.epoch(0)
        if abs(run.cells_of_a_batch / cells - 1) < 0.05:
            run.rates = []
            return run
        budget *= cells / run.cells_of_a_batch


def parlai(mode: str) -> Dict[str, float]:
    """One epoch of ParlAI's ranker."""
    command = [os.environ["PARLAI_PYTHON"], "bench_dynb.py", mode, "ranker", "train:stream"]
    environment = {**os.environ, "BENCH_VALID": "0"}
    folder = os.environ["PARLAI_BENCH"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def compare(pairs, name: str, encoder, size: int) -> None:
    """Print fixed order beside a budget of as many cells."""
    fixed = Run(pairs, Fixed(size), encoder)
    fixed.epoch(0)
    fixed.rates = []
    runs = {
        f"Fixed({size}), file order": fixed,
        f"Batchsort({size})": Run(pairs, Batchsort(size), encoder),
        "Words, as many cells": same_cells(pairs, encoder, fixed.cells_of_a_batch),
    }
    for number in range(N_REPEATS):
        for run in runs.values():
            run.epoch(number + 1)
    n_weights = fixed.agent.parameters.n_parameters
    print(f"\nranker, {name}, {n_weights:,} weights")
    print(
        f"{'batches':28}{'number':>8}{'cells each':>12}{'padding':>9}{'ex/CPU-s':>10}{'ratio':>7}"
    )
    base = statistics.median(fixed.rates)
    for name, run in runs.items():
        rate = statistics.median(run.rates)
        padding = 1 - run.n_words / run.n_cells
        print(
            f"{name:28}{run.n_batches:8}{run.cells_of_a_batch:12,.0f}{padding:9.1%}"
            f"{rate:10,.0f}{rate / base:7.2f}"
        )


def beside_parlai(pairs) -> None:
    """Print ParlAI's modes beside our best one, weights alike."""
    ours = Run(pairs, Words(12800), bilstm(68))
    ours.epoch(0)
    ours.rates = []
    theirs: Dict[str, List[float]] = {"none": [], "batchsort": [], "full": []}
    n_weights = 0
    for number in range(N_REPEATS):
        ours.epoch(number + 1)
        for mode, rates in theirs.items():
            found = parlai(mode)
            n_weights = int(found["params"])
            rates.append(found["exs_per_cpu_s"])
    best = max(statistics.median(rates) for rates in theirs.values())
    rate = statistics.median(ours.rates)
    print(f"\nBeside ParlAI 1.7.2, transformer ranker of {n_weights:,} weights, batches of 32")
    for mode, rates in theirs.items():
        print(f"  ParlAI, dynamic batching {mode:10}{statistics.median(rates):8,.0f} ex/CPU-s")
    n_ours = ours.agent.parameters.n_parameters
    print(f"  ours, BiLSTM of {n_ours:,}, Words(12800){rate:8,.0f} ex/CPU-s")
    print(f"  ours over ParlAI's best: {rate / best:.2f}")


def main() -> None:
    pairs = [[pair] for pair in skewed_pairs()]
    compare(pairs, "two blocks of padded attention, width 64", attention(64), 32)
    for width, size in ((32, 16), (64, 32)):
        compare(pairs, f"BiLSTM of width {width}", bilstm(width), size)
    if os.environ.get("PARLAI_PYTHON") and os.environ.get("PARLAI_BENCH"):
        beside_parlai(pairs)
    else:
        print("\nParlAI: not measured; name it in PARLAI_PYTHON and PARLAI_BENCH")


if __name__ == "__main__":
    main()
