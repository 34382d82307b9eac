"""A step over a table of 100,000 x 128: our row-sparse optimizers beside dense ones.

A step is what follows the forward pass: the gradient of a batch of 32 or 128 texts of 12
words, drawn by Zipf's law, goes into the table's gradient, the norm is
clipped, the weights are updated, the gradient is cleared. Ours go through BagEmbed and
FlatParameters, with NumPy's ops and with the compiled ones; Thinc's Adam and SGD get the
gradient as a whole, as its layers give it. Thinc has no Adagrad: a dense one is below, in
NumPy, in place and in pieces that stay in the cache; SparseAdagrad is shown beside Thinc's
SGD, too, which has half of its work. Milliseconds of CPU time, one thread, medians of steps
that take turns; with averages of the weights, too, which are of the whole table.

    python tests/benchmarks/bench_sparse_step.py
"""

import statistics
import time
from typing import Any, Callable, Dict, List

import numpy as np
from thinc.api import SGD, Adam
from thinc.types import Ragged

from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.models.parameters import FlatParameters
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.sparse_adagrad import SparseAdagrad
from thincdialog.optimizers.sparse_sgd import SparseSGD

N_ROWS, WIDTH, N_WORDS = 100_000, 128, 12
N_SPARSE, N_DENSE, N_ROUNDS = 80, 2, 9
GRAD_CLIP = 1.0
PIECE = 32768
BESIDE = {
    "LazyAdam": ["Adam"],
    "LazyAdam, averages": ["Adam, averages"],
    "SparseSGD": ["SGD"],
    "SparseSGD, averages": ["SGD, averages"],
    "SparseAdagrad": ["Adagrad (NumPy)", "SGD"],
}

Step = Callable[[], Any]


class DenseAdagrad:
    """A plain one, called as Thinc's optimizers are."""

    def __init__(self, rate: float) -> None:
        self.rate = np.float32(rate)
        self.squares = np.zeros(N_ROWS * WIDTH, dtype="f")

    def __call__(self, key: Any, weights: np.ndarray, gradient: np.ndarray) -> Any:
        scale = np.float32(min(1.0, GRAD_CLIP / float(np.linalg.norm(gradient))))
        for start in range(0, weights.size, PIECE):
            now = slice(start, start + PIECE)
            W, g, S = weights[now], gradient[now], self.squares[now]
            g *= scale
            S += g * g
            root = np.sqrt(S)
            root += np.float32(1e-8)
            g /= root
            g *= self.rate
            W -= g
            g.fill(0)
        return weights, gradient


def batches(n_texts: int) -> List[np.ndarray]:
    """Ids by Zipf's law, spread over the table."""
    rng = np.random.default_rng(0)
    places = rng.permutation(N_ROWS)
    ranks = N_ROWS ** rng.random((16, n_texts * N_WORDS))
    return [places[each.astype("i")].astype("i") for each in ranks]


def sparse(optimizer: Any, ops_name: str, n_texts: int) -> Step:
    """A step of ours."""
    with using_ops(get_dialog_ops(-1, ops_name)):
        model = BagEmbed(WIDTH, N_ROWS)
        model.initialize()
    parameters = FlatParameters(model)
    lengths = np.full(n_texts, N_WORDS, dtype="i")
    backprops = []
    for ids in batches(n_texts):
        tokens = np.stack([ids, np.zeros_like(ids)], axis=1)
        Y, backprop = model.begin_update(Ragged(tokens, lengths))
        backprops.append((backprop, np.ones_like(Y)))
    numbers = iter(range(1 << 30))

    def step() -> None:
        backprop, dY = backprops[next(numbers) % len(backprops)]
        backprop(dY)
        parameters.update(optimizer)

    return step


def dense(optimizer: Any, n_texts: int) -> Step:
    """A step of Thinc's."""
    values = np.random.default_rng(0).normal(size=N_ROWS * WIDTH).astype("f")
    gradient = np.zeros_like(values)
    ids = batches(n_texts)
    d = np.ones((n_texts * N_WORDS, WIDTH), dtype="f")
    ops = get_dialog_ops(-1)
    numbers = iter(range(1 << 30))

    def step() -> None:
        nonlocal values
        table = gradient.reshape((N_ROWS, WIDTH))
        ops.scatter_add(table, ids[next(numbers) % len(ids)], d)
        values, _ = optimizer((0, "E"), values, gradient)

    return step


def milliseconds(step: Step, n: int) -> float:
    """CPU time of a step, mean of n."""
    started = time.thread_time()
    for _ in range(n):
        step()
    return (time.thread_time() - started) / n * 1000


def main() -> None:
    names = ["numpy"]
    try:
        import numba  # noqa: F401
    except ImportError:
        print("fast ops: left out, numba is missing")
    else:
        names.append("fast")
    for n_texts in (32, 128):
        compare(n_texts, names)


def compare(n_texts: int, names: List[str]) -> None:
    """Print the steps of batches of one size."""
    options = {"grad_clip": GRAD_CLIP, "use_averages": False}
    averaged = {"grad_clip": GRAD_CLIP, "use_averages": True}
    denses: Dict[str, Step] = {
        "Adam": dense(Adam(0.001, **options), n_texts),
        "Adam, averages": dense(Adam(0.001, **averaged), n_texts),
        "SGD": dense(SGD(0.1, **options), n_texts),
        "SGD, averages": dense(SGD(0.1, **averaged), n_texts),
        "Adagrad (NumPy)": dense(DenseAdagrad(0.1), n_texts),
    }
    ours: Dict[Any, Step] = {}
    for ops in names:
        for name, optimizer in (
            ("LazyAdam", LazyAdam(0.001, **options)),
            ("LazyAdam, averages", LazyAdam(0.001, **averaged)),
            ("SparseSGD", SparseSGD(0.1, **options)),
            ("SparseSGD, averages", SparseSGD(0.1, **averaged)),
            ("SparseAdagrad", SparseAdagrad(0.1, **options)),
        ):
            ours[name, ops] = sparse(optimizer, ops, n_texts)
    times: Dict[Any, List[float]] = {key: [] for key in (*denses, *ours)}
    for step in (*denses.values(), *ours.values()):
        milliseconds(step, 8)
    for _ in range(N_ROUNDS):
        for name, step in denses.items():
            times[name].append(milliseconds(step, N_DENSE))
        for key, step in ours.items():
            times[key].append(milliseconds(step, N_SPARSE))
    n_rows = statistics.mean(len(np.unique(ids)) for ids in batches(n_texts))
    print(f"\n{n_texts} texts: {n_rows:.0f} rows of {N_ROWS:,} a step")
    print(f"{'':22}{'ops':8}{'ms':>9}   {'beside':18}{'ms':>9}{'ratio':>8}")
    for name, ops in ours:
        for beside in BESIDE[name]:
            mine, theirs = times[name, ops], times[beside]
            ratio = statistics.median(one / two for one, two in zip(theirs, mine))
            print(
                f"{name:22}{ops:8}{statistics.median(mine):9.3f}   {beside:18}"
                f"{statistics.median(theirs):9.2f}{ratio:7.0f}x"
            )


if __name__ == "__main__":
    main()
