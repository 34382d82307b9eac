"""Compare steps over a table of 100,000 x 128: our row-sparse optimizers, and dense ones.

A step is everything after the forward pass: the gradient of a batch of 32 or 128 texts of 12 words,
drawn by Zipf's law, is added to the table's gradient, the norm is clipped, the weights are
updated, and the gradient is cleared. Our steps use BagEmbed and FlatParameters, with NumPy's ops
and with the compiled ones. Thinc's Adam and SGD get the gradient as a whole, as Thinc's layers
return it. Thinc has no Adagrad, so ours, called as Thinc's optimizers are, makes dense steps in
NumPy; SparseAdagrad is compared with Thinc's SGD, too, which does half of the work. Printed are
milliseconds of CPU time, one thread, medians of steps that take turns, also with averages of the
weights, which cover the whole table. Then come steps of LazyAdam whose gradient is the sum of
several microbatches, compared with steps that add up whole vectors.

    python tests/benchmarks/bench_sparse_step.py
"""

import statistics
from itertools import cycle
from typing import Any, Callable, Dict, List

import numpy as np
from measuring import cpu_seconds, in_turns, medians, sized
from thinc.api import SGD, Adam
from thinc.types import Ragged

from thincdialog.cli.output import table
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.models.gradient_sum import GradientSum
from thincdialog.models.parameters import FlatParameters
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.sparse_sgd import SparseAdagrad, SparseSGD

N_ROWS, WIDTH, N_WORDS = sized(100_000, 2_000), 128, 12
N_SPARSE, N_DENSE, N_ROUNDS = sized((80, 2, 9), (4, 1, 1))
OPTIMIZERS: Dict[str, Any] = {
    "LazyAdam": (LazyAdam, 0.001),
    "SparseSGD": (SparseSGD, 0.1),
    "SparseAdagrad": (SparseAdagrad, 0.1),
    "Adam": (Adam, 0.001),
    "SGD": (SGD, 0.1),
    "Adagrad (NumPy)": (SparseAdagrad, 0.1),
}
RIVALS = {
    "LazyAdam": ["Adam"],
    "LazyAdam, averages": ["Adam, averages"],
    "SparseSGD": ["SGD"],
    "SparseSGD, averages": ["SGD, averages"],
    "SparseAdagrad": ["Adagrad (NumPy)", "SGD"],
}
Step = Callable[[], Any]


def batches(n_texts: int) -> List[np.ndarray]:
    """Draw ids by Zipf's law, spread over the table."""
    rng = np.random.default_rng(0)
    places = rng.permutation(N_ROWS)
    ranks = N_ROWS ** rng.random((16, n_texts * N_WORDS))
    return [places[each.astype("i")].astype("i") for each in ranks]


def optimizer(name: str) -> Any:
    """Return an optimizer by its name above, with averages if the name contains that word."""
    kind, _, averages = name.partition(", ")
    make, rate = OPTIMIZERS[kind]
    return make(rate, grad_clip=1.0, use_averages=bool(averages))


def sparse(name: str, ops_name: str, n_texts: int) -> Step:
    """Return our step."""
    ours = optimizer(name)
    with using_ops(get_dialog_ops(-1, ops_name)):
        model = BagEmbed(WIDTH, N_ROWS)
        model.initialize()
    parameters = FlatParameters(model)
    lengths = np.full(n_texts, N_WORDS, dtype="i")
    tokens = [np.stack([ids, np.zeros_like(ids)], axis=1) for ids in batches(n_texts)]
    passes = cycle([model.begin_update(Ragged(each, lengths)) for each in tokens])
    dY = np.ones((n_texts, WIDTH), dtype="f")

    def step() -> None:
        next(passes)[1](dY)
        parameters.update(ours)

    return step


def of_several(ops_name: str, n_microbatches: int, is_whole: bool) -> Step:
    """Return a step of several batches of 32 texts. Their gradients are added up as whole vectors
    or as rows."""
    ours = optimizer("LazyAdam")
    with using_ops(get_dialog_ops(-1, ops_name)):
        model = BagEmbed(WIDTH, N_ROWS)
        model.initialize()
    parameters, lengths = FlatParameters(model), np.full(32, N_WORDS, dtype="i")
    tokens = [np.stack([ids, np.zeros_like(ids)], axis=1) for ids in batches(32)]
    passes = cycle([model.begin_update(Ragged(each, lengths)) for each in tokens])
    dY = np.ones((32, WIDTH), dtype="f")

    def step_whole() -> None:
        total = np.zeros_like(parameters.values)
        for _ in range(n_microbatches):
            next(passes)[1](dY)
            total += parameters.gradients
            parameters.clear_gradients()
        parameters.gradients[:] = total
        parameters.update(ours)

    def step() -> None:
        total = GradientSum(parameters.ops, parameters.segments)
        for _ in range(n_microbatches):
            next(passes)[1](dY)
            total.add(parameters.dense_gradients, parameters.take_rows())
        parameters.give_rows(total.take(parameters.dense_gradients))
        parameters.update(ours)

    return step_whole if is_whole else step


def dense(name: str, n_texts: int) -> Step:
    """Return Thinc's step."""
    whole = optimizer(name)
    values = np.random.default_rng(0).normal(size=N_ROWS * WIDTH).astype("f")
    gradient = np.zeros_like(values)
    ids = cycle(batches(n_texts))
    d = np.ones((n_texts * N_WORDS, WIDTH), dtype="f")
    ops = get_dialog_ops(-1)

    def step() -> None:
        nonlocal values
        ops.scatter_add(gradient.reshape((N_ROWS, WIDTH)), next(ids), d)
        values, _ = whole((0, "E"), values, gradient)

    return step


def compare(n_texts: int) -> None:
    """Print the steps for one batch size."""
    names = dict.fromkeys(name for rivals in RIVALS.values() for name in rivals)
    steps: Dict[Any, Step] = {name: dense(name, n_texts) for name in names}
    for ops in ("numpy", "fast"):
        steps.update({(name, ops): sparse(name, ops, n_texts) for name in RIVALS})

    def milliseconds(key: Any) -> float:
        """Return the CPU time of a step, the mean of a few."""
        n = N_SPARSE if isinstance(key, tuple) else N_DENSE
        return cpu_seconds(lambda: [steps[key]() for _ in range(n)])[0] / n * 1000

    for step in steps.values():
        cpu_seconds(lambda step=step: [step() for _ in range(8)])
    times = in_turns(steps, milliseconds, N_ROUNDS)
    middle = medians(times)
    n_rows = statistics.mean(len(np.unique(ids)) for ids in batches(n_texts))
    print(f"\n{n_texts} texts: {n_rows:.0f} rows of {N_ROWS:,} a step")
    rows = [["", "ops", "compared with", "ms", "ms", "ratio"]]
    for name, ops in (key for key in steps if isinstance(key, tuple)):
        for rival in RIVALS[name]:
            pairs = zip(times[rival], times[name, ops])
            ratio = statistics.median(theirs / mine for theirs, mine in pairs)
            figures = (f"{middle[name, ops]:.3f}", f"{middle[rival]:.2f}", f"{ratio:.0f}x")
            rows.append([name, ops, rival, *figures])
    print(table(rows, n_left=3))


def compare_sums(n_microbatches: int) -> None:
    """Print the steps of several microbatches."""
    rows = [["microbatches", "ops", "rows, ms", "vectors, ms", "ratio"]]
    for ops in ("numpy", "fast"):
        steps = {is_whole: of_several(ops, n_microbatches, is_whole) for is_whole in (False, True)}

        def milliseconds(is_whole: bool, steps: Any = steps) -> float:
            n = N_DENSE if is_whole else N_SPARSE // 4
            return cpu_seconds(lambda: [steps[is_whole]() for _ in range(n)])[0] / n * 1000

        for is_whole in steps:
            milliseconds(is_whole)
        times = in_turns(steps, milliseconds, N_ROUNDS)
        middle = medians(times)
        ratio = statistics.median(whole / mine for mine, whole in zip(times[False], times[True]))
        figures = (f"{middle[False]:.3f}", f"{middle[True]:.2f}", f"{ratio:.0f}x")
        rows.append([str(n_microbatches), ops, *figures])
    print(table(rows, n_left=2))


if __name__ == "__main__":
    for size in (32, 128):
        compare(size)
    print()
    for n_microbatches in (2, 8):
        compare_sums(n_microbatches)
