"""Train rankers on texts of very different lengths: batches in file order are compared with
batches within a budget of words that have the same number of cells on average.

The data is 4,000 pairs of a context and a reply, lengths lognormal with median 12, up to 200
words: the corpus of ../shared/parlai_bench/gen_skewed.py, word for word. There are two encoders.
One is an attention that computes all cells of its rectangles, padding included, as most libraries
do (a user would add it with --code). The other is our BiLSTM, which computes no padding, but takes
as many steps per batch as the longest row has words: file order wastes these.

If PARLAI_PYTHON names the Python of an environment that has ParlAI 1.7.2, its transformer ranker
with about the same number of weights and with dynamic batching is measured on the same pairs.
PARLAI_BENCH must then be a writable folder with bench_dynb.py, common.py and the files that
gen_skewed.py makes. All variants take turns; printed are examples per CPU second, one thread.

    PARLAI_PYTHON=~/parlai/bin/python PARLAI_BENCH=~/parlai_bench \
        python tests/benchmarks/bench_batching_training.py
"""

import itertools
import math
import os
import random
from functools import partial
from typing import Any, Callable, Dict

import numpy as np
from measuring import Stopwatch, in_turns, medians, parlai, sized
from thinc.api import Adam, Linear, Model, chain
from thinc.initializers import glorot_uniform_init
from thinc.types import Ragged

from thincdialog.agents.ranker import RankerAgent
from thincdialog.batchers import Batcher, Batchsort, Fixed, Words
from thincdialog.cli.output import table
from thincdialog.data.tokenizers import WordTokenizer
from thincdialog.layers.fill_empty import fill_empty
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.bilstm_encoder import BiLSTMEncoder
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.runners.alone import one_step
from thincdialog.teachers import IterableTeacher
from thincdialog.worlds.batch_world import BatchWorld

N_EXAMPLES, N_REPEATS = sized((4000, 5), (100, 1))
# How far the cells per batch may differ between two ways of batching.
CLOSE = sized(0.05, 0.5)
# Axes of two rectangles to sum over: rows and steps.
ROWS = ((0, 1), (0, 1))


def skewed_pairs():
    """Generate the corpus: 4,000 pairs of texts."""
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


def attention_encoder(width: int, depth: int) -> Model:
    """Embeddings, attention blocks, mean and a linear layer: Ragged ids to (n, width). A block has
    one attention head and a feed-forward net of twice the width, each added to its input."""
    names, dims = ("QKV", "W1", "W2"), {"nO": width}
    blocks = [
        Model("padded_attention", forward, init=init, dims=dims, params=dict.fromkeys(names))
        for _ in range(depth)
    ]
    return chain(fill_empty(), TokenEmbed(width), *blocks, pool("mean"), Linear(width))


def init(model, X=None, Y=None):
    width = model.get_dim("nO")
    for name, rows, columns in (("QKV", 3, 1), ("W1", 2, 1), ("W2", 1, 2)):
        shape = (rows * width, columns * width)
        model.set_param(name, glorot_uniform_init(model.ops, shape) * 0.5)


def forward(model, Xr: Ragged, is_train: bool):
    QKV, W1, W2 = (model.get_param(name) for name in ("QKV", "W1", "W2"))
    lengths = np.asarray(Xr.lengths)
    is_there = np.arange(lengths.max()) < lengths[:, None]  # (n_rows, n_steps)
    X = np.zeros((*is_there.shape, QKV.shape[1]), dtype="f")
    X[is_there] = Xr.dataXd
    scale = np.float32(QKV.shape[1] ** -0.5)
    Q, K, V = np.split(np.tensordot(X, QKV.T, 1), 3, axis=2)
    P = Q @ K.transpose(0, 2, 1) * scale
    P += np.where(is_there, np.float32(0), np.float32(-1e9))[:, None]
    P = np.exp(P - P.max(axis=2, keepdims=True))
    P /= P.sum(axis=2, keepdims=True)
    A = X + P @ V
    H = np.maximum(np.tensordot(A, W1.T, 1), 0)
    Y = A + np.tensordot(H, W2.T, 1)

    def backprop(dYr: Ragged) -> Ragged:
        dY = np.zeros_like(Y)
        dY[is_there] = dYr.dataXd
        dH = np.tensordot(dY, W2, 1) * (H > 0)
        dA = dY + np.tensordot(dH, W1, 1)
        dP = dA @ V.transpose(0, 2, 1)
        dV = P.transpose(0, 2, 1) @ dA
        dS = P * (dP - (dP * P).sum(axis=2, keepdims=True)) * scale
        d_all = np.concatenate([dS @ K, dS.transpose(0, 2, 1) @ Q, dV], axis=2)
        model.inc_grad("W2", np.tensordot(dY, H, ROWS))
        model.inc_grad("W1", np.tensordot(dH, A, ROWS))
        model.inc_grad("QKV", np.tensordot(d_all, X, ROWS))
        dX: Any = dA + np.tensordot(d_all, QKV, 1)
        return Ragged(dX[is_there], Xr.lengths)

    return Ragged(Y[is_there], Xr.lengths), backprop


class Run:
    """A ranker that is trained in batches of one kind.

    encoder (Callable): Makes the ranker's encoder.
    """

    def __init__(self, pairs, batcher: Batcher, encoder: Callable[[], Model]):
        teacher = IterableTeacher({"train": pairs}).for_split("train", training=True)
        with using_ops(get_dialog_ops(-1)):
            model, most = BiEncoder(encoder()), 200
            self.agent = RankerAgent(model, history_size=1, max_context=most, max_label=most)
            self.agent.initialize(teacher, tokenizer=WordTokenizer(), seed=0)
        self.world = BatchWorld(teacher, self.agent, batcher)
        self.optimizer, self.n_epochs = Adam(0.001), 0
        self.epoch()  # Compiles, reads the data, and counts cells.

    def epoch(self) -> float:
        """Train for one epoch. Return the examples per CPU second."""
        agent, world, watch = self.agent, self.world, Stopwatch()
        world.start_epoch(self.n_epochs, 0)
        self.n_epochs += 1
        self.n_batches = self.n_cells = self.n_words = 0
        with using_ops(get_dialog_ops(-1)):
            while not world.epoch_done():
                with watch:
                    one_step(agent, world, self.optimizer, 0, self.n_batches + 1, 1)
                rows = [(m["text"].split(), m["labels"][0].split()) for m in world.acts[0]]
                lengths = [(len(text), len(label)) for text, label in rows]
                self.n_batches += 1
                self.n_words += sum(map(sum, lengths))
                self.n_cells += len(lengths) * sum(map(max, zip(*lengths)))
        self.cells_of_a_batch = self.n_cells / self.n_batches
        return N_EXAMPLES / watch.seconds


def same_cells(pairs, encoder, cells: float) -> Run:
    """Train with batches within a budget of words, chosen to have this many cells on average."""
    budget = cells
    while True:
        run = Run(pairs, Words(round(budget)), encoder)
        if abs(run.cells_of_a_batch / cells - 1) < CLOSE:
            return run
        budget *= cells / run.cells_of_a_batch


def compare(pairs, title: str, encoder, size: int) -> None:
    """Print file order, and a budget with the same number of cells."""
    fixed = Run(pairs, Fixed(size), encoder)
    runs = {
        f"Fixed({size}), file order": fixed,
        f"Batchsort({size})": Run(pairs, Batchsort(size), encoder),
        "Words, as many cells": same_cells(pairs, encoder, fixed.cells_of_a_batch),
    }
    rates = medians(in_turns(runs, lambda name: runs[name].epoch(), N_REPEATS))
    print(f"\nranker, {title}, {fixed.agent.parameters.n_parameters:,} weights")
    rows = [["batches", "number", "cells each", "padding", "ex/CPU-s", "ratio"]]
    for name, run in runs.items():
        cells, padding = f"{run.cells_of_a_batch:,.0f}", f"{1 - run.n_words / run.n_cells:.1%}"
        ratio = rates[name] / rates[f"Fixed({size}), file order"]
        rows.append(
            [name, str(run.n_batches), cells, padding, f"{rates[name]:,.0f}", f"{ratio:.2f}"]
        )
    print(table(rows))


def beside_parlai(pairs) -> None:
    """Compare ParlAI's modes with our fastest model that has about as many weights."""
    ours = Run(pairs, Words(12800), partial(BiLSTMEncoder, width=68, dropout=0.0))
    sizes: Dict[str, int] = {}

    def measure(mode: str) -> float:
        if mode == "ours":
            return ours.epoch()
        found = parlai("bench_dynb.py", mode, "ranker", "train:stream", BENCH_VALID="0")
        sizes["theirs"] = int(found["params"])
        return found["exs_per_cpu_s"]

    rates = medians(in_turns(("ours", "none", "batchsort", "full"), measure, N_REPEATS))
    rate, n_theirs = rates.pop("ours"), sizes["theirs"]
    print(f"\nCompared: ParlAI 1.7.2, transformer ranker of {n_theirs:,} weights, batches of 32")
    for mode, theirs in rates.items():
        print(f"  ParlAI, dynamic batching {mode:10}{theirs:8,.0f} ex/CPU-s")
    n_ours = ours.agent.parameters.n_parameters
    print(f"  ours, BiLSTM of {n_ours:,}, Words(12800){rate:8,.0f} ex/CPU-s")
    print(f"  ours over ParlAI's best: {rate / max(rates.values()):.2f}")


def main() -> None:
    pairs = [[pair] for pair in skewed_pairs()]
    title = "two blocks of padded attention, width 64"
    compare(pairs, title, lambda: attention_encoder(64, depth=2), 32)
    for width, size in ((32, 16), (64, 32)):
        encoder = partial(BiLSTMEncoder, width=width, dropout=0.0)
        compare(pairs, f"BiLSTM of width {width}", encoder, size)
    if os.environ.get("PARLAI_PYTHON") and os.environ.get("PARLAI_BENCH"):
        beside_parlai(pairs)
    else:
        print("\nParlAI: not measured; name it in PARLAI_PYTHON and PARLAI_BENCH")


if __name__ == "__main__":
    main()
