"""Train on a GPU, compared with PyTorch on the same GPU and the same batches, with one CPU thread,
and with the limits of the GPU. Prints tables in Markdown.

    python tests/benchmarks/bench_gpu.py             (make bench-gpu)
    python tests/benchmarks/bench_gpu.py --quick     only shows that the benchmark runs

Steps are those of the shipped configs and start from texts. The first epoch turns texts into ids
and does not count. PyTorch (eager, fused Adam, SDPA; left out if it cannot be imported) gets the
ids of the same batches, which are on the GPU already. Launches, waits and copies are counted by
the project's stand-in for CuPy, in a separate process (it needs a C++ compiler).

The limits are what the GPU reaches in a large matrix product and in a large copy. The memory
traffic of a step counts weights and rows of embeddings only. Our own kernels and matrix products
are listed separately, each timed between two events, minus the time that two events take with
nothing between them. CuPy's own kernels are not listed.

The stand-in measures no times, so they are printed as "-". So are the times of steps during which
the GPU waits for the host. Without a GPU the exit code is 1.
"""

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from bench_torch_ranker import make_torch as make_torch_ranker
from bench_transformer import N_CLASSES
from bench_transformer import make_torch as make_torch_transformer
from measuring import QUICK, ROOT, in_turns, medians

from thincdialog.errors import DialogError
from thincdialog.inspection.trial import prepared
from thincdialog.ops.choice import get_dialog_ops
from thincdialog.ops.gpu import kernels

ENCODER, OPTIMIZER = "agent.model.encoder", "training.optimizer"
TOKENS = {
    "@models": "thincdialog.TransformerTokens.v1",
    "width": 128, "depth": 4, "n_heads": 4, "positions": "learned",
}  # fmt: skip
TRANSFORMER = {"@models": "thincdialog.TransformerEncoder.v1", "tokens": TOKENS}
# The number of token ids of PyTorch's transformer.
ROWS = {"tokenizer.n_rows": 32760}
RANKING = {ENCODER: TRANSFORMER, "agent.model.share": "all", **ROWS}
# Name of each case: its config, and the settings changed there.
CASES = {
    "ranker (bags)": ("ranker", {}),
    "transformer ranker": ("ranker", RANKING),
    "transformer classifier": (
        "intent", {
            "agent.model": {"@models": "thincdialog.Classifier.v1", "encoder": TRANSFORMER},
            "tokenizer.char_ngrams": None, "tokenizer.ngrams": 1, **ROWS,
        },
    ),
    "BiLSTM ranker": (
        "ranker", {ENCODER: {"@models": "thincdialog.BiLSTMEncoder.v1"}, **ROWS},
    ),
}  # fmt: skip
# Cases whose kernels are listed separately.
TOLD = ("transformer ranker", "BiLSTM ranker")
# Source of a kernel that keeps a GPU busy.
HOLD = r"""
extern "C" __global__ void hold(float* x, long long n) {
    float y = x[0];
    for (long long i = 0; i < n; i++) y = y * 0.999f + 0.001f;
    x[0] = y;
}
"""


class Size:
    """How much to measure.

    batches (int): Batches of an epoch.
    batch (Optional[int]): Examples in a batch; None for the case's own number.
    steps, rounds (int): Steps in a round, and rounds, of which the medians are taken.
    matrix, copied (int): Rows of the matrix product, and floats of the copy, that show the limits.
    """

    def __init__(self, is_quick):
        self.batches, self.batch, self.steps, self.rounds = (
            (3, 4, 2, 2) if is_quick else (24, None, 48, 7)
        )
        self.matrix, self.copied = (8, 64) if is_quick else (8192, 1 << 28)

    def of_batch(self, name):
        return self.batch or {"ranker (bags)": 512}.get(name, 128)


def write_data(folder, file, n):
    """Write texts of skewed lengths (lognormal, median 12, at most 60 words), words by Zipf's
    law."""
    rng, path = random.Random(0), folder / f"{file}-{n}.jsonl"

    def text():
        n_words = min(60, max(1, round(rng.lognormvariate(np.log(12), 0.8))))
        return " ".join(f"w{int(30000 ** rng.random())}" for _ in range(n_words))

    def row(number):
        if file == "intent":
            return {"text": text(), "label": f"l{number % N_CLASSES}"}
        return {"turns": [{"speaker": who, "text": text()} for who in "abab"]}

    path.write_text("".join(json.dumps(row(number)) + "\n" for number in range(n)))
    return path


class Ours:
    """Our training of a case on a device.

    batches (List): The model's inputs in an epoch: for each side ids, their segments and lengths,
        all on the host.
    """

    def __init__(self, stack, folder, name, size, gpu_id):
        file, changes = CASES[name]
        batch = size.of_batch(name)
        n_examples = size.batches * batch
        data = write_data(folder, file, n_examples if file == "intent" else -(-n_examples // 3))
        has_numba = find_spec("numba") is not None
        overrides = {
            **changes, "paths.train": str(data), "world.batcher.size": batch,
            "system.gpu_id": gpu_id, "system.ops": "fast" if has_numba else "numpy",
            f"{OPTIMIZER}.use_averages": False,
        }  # fmt: skip
        config = ROOT / "configs" / f"{file}.cfg"
        self.trial = stack.enter_context(prepared(config, overrides, stderr=io.StringIO()))
        self.model, self.ops = self.trial.model, self.trial.model.ops
        self.batches, self.n_examples, self._steps = [], batch, self.trial.steps()
        self.is_on_gpu = gpu_id >= 0
        with self._noting():
            for _ in range(size.batches):
                self.step()
        self.step()

    def step(self):
        next(self._steps)
        self.trial.agent.update(self.trial.optimizer)

    def wait(self):
        if self.is_on_gpu:
            self.ops.xp.cuda.get_current_stream().synchronize()

    @contextmanager
    def _noting(self):
        forward, to_host = self.model._func, self.ops.to_numpy

        def noting_forward(model, X, is_train):
            sides = X if isinstance(X, tuple) else (X,)
            arrays = [(side.dataXd, side.lengths) for side in sides]
            self.batches.append([tuple(map(to_host, each)) for each in arrays])
            return forward(model, X, is_train)

        self.model._func = noting_forward
        yield
        self.model._func = forward

    def least_bytes(self):
        """Count the bytes that a step must at least read and write, for embeddings and weights
        alone. The vector of each token is read. For each row that is trained, the gradient is
        written and read, and the weight and two moments are read and written."""
        parts = self.trial.agent.parameters.segments
        width = max((part.width for part in parts if part.width), default=0)
        dense = sum(part.stop - part.start for part in parts if not part.width)
        ids = [np.concatenate([ids[:, 0] for ids, _ in batch]) for batch in self.batches]
        n_tokens, n_rows = np.mean([(len(each), len(np.unique(each))) for each in ids], axis=0)
        return 4 * (width * n_tokens + 8 * (width * n_rows + dense))


def torch_steps(torch, name, batches):
    """Return functions step(number), with the same model on the same ids as PyTorch's users might
    write it; none if there is no such model."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("transformer"):
        is_ranker = "ranker" in name
        prepare, step = make_torch_transformer(torch, is_ranker, device)
        inputs, rng = [], np.random.default_rng(0)
        for sides in batches:
            n = len(sides[0][1])
            right = (
                np.arange(n) % len(sides[1][1]) if is_ranker else rng.integers(N_CLASSES, size=n)
            )
            given = [prepare(ids[:, 0], lengths) for ids, lengths in sides]
            inputs.append((given, torch.from_numpy(right).to(device)))

        def torch_step(number):
            step(*inputs[number % len(inputs)])

        return [torch_step]
    if name.startswith("ranker"):
        bags = [tuple(_two_bags(*side) for side in sides) for sides in batches]
        ways = ({"is_fused": True}, {"is_sparse": True})
        return [make_torch_ranker(torch, bags, device=device, **way) for way in ways]
    return []


def _two_bags(ids, lengths):
    """Order the ids of each example, the current turn before the history. Return them and both
    sizes."""
    examples, is_history = np.arange(len(lengths)).repeat(lengths), ids[:, 1] > 0
    sizes = np.stack([np.bincount(examples[is_history == which], minlength=len(lengths))
                      for which in (False, True)], axis=1)  # fmt: skip
    return ids[np.lexsort((is_history, examples)), 0].astype(np.int64), sizes


class Card:
    """Time work with CUDA's events, while a kernel holds the GPU until all of the work is queued.
    Seconds are nan if the hold ends before, for example because the work waits for the GPU.

    fewest_turns, most_turns (int): Range of iterations of the kernel's loop, which take about 10 ms
        to half a second.
    """

    fewest_turns, most_turns = 1 << 22, 1 << 28

    def __init__(self, cupy):
        self.is_real = not hasattr(cupy, "is_stand_in")
        if not self.is_real:
            self.fewest_turns, self.most_turns = min(self.fewest_turns, 8), min(self.most_turns, 8)
        self.cupy, self._kernel = cupy, cupy.RawKernel(HOLD, "hold")
        self._cell = cupy.zeros((1,), dtype="f")
        self._turns = self.fewest_turns
        # The first call compiles the kernel.
        self._kernel((1,), (1,), (self._cell, np.int64(1)))

    def event(self):
        """Record an event that is done when the work queued so far is done."""
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def between(self, first, last):
        """Return the seconds between two events that are done."""
        return self.cupy.cuda.get_elapsed_time(first, last) / 1e3

    def time(self, work):
        """Return the seconds of the work, which is repeated with a longer hold if the hold ended
        too early."""
        turns = self._turns
        while turns <= self.most_turns:
            self._kernel((1,), (1,), (self._cell, np.int64(turns)))
            first = self.event()
            work()
            last, is_held = self.event(), not first.done
            last.synchronize()
            if is_held:
                self._turns = turns
                return self.between(first, last)
            turns *= 2
        return np.nan

    def seconds(self, work, n=1, pick=np.median):
        """Return the seconds of the work itself, repeated n times."""
        found = []
        while len(found) < n and not np.isnan(found).any():
            found.append(self.time(work))
        return pick(found)

    def limits(self, size, ops):
        """Return the bytes per second of a copy, and the floating point operations per second of a
        product."""
        one, other = (self.cupy.ones((size.copied,), dtype="f") for _ in range(2))
        # A GPU needs less power, and so is faster, if all numbers are the same.
        shape = (size.matrix, size.matrix)
        A = self.cupy.asarray(np.random.default_rng(0).standard_normal(shape, dtype="f"))

        def copy():
            one[...] = other

        def multiply():
            ops.gemm(A, A)

        copy(), multiply()
        copied, multiplied = (self.seconds(work, 5, np.min) for work in (copy, multiply))
        return 2 * one.nbytes / copied, 2 * size.matrix**3 / multiplied

    def told(self, ours):
        """Return the seconds of a step, those of each kernel and of products, by name, and the
        floating point operations of the products."""
        found, operations, ops, start = [], [], ours.ops, kernels._launch
        pairs = []

        def timed(name, call, *given, **more):
            first = self.event()
            result = call(*given, **more)
            found.append((name, first, self.event()))
            return result

        def timed_start(name, *given, **more):
            timed(name, start, name, *given, **more)

        def counted(product, width):
            def counted_product(*given, **more):
                x, y = given[-2:]
                operations.append(2 * x.size * y.shape[width(**more)])
                return timed("(product)", product, *given, **more)

            return counted_product

        def nothing():
            pairs.clear()
            pairs.extend((self.event(), self.event()) for _ in range(100))

        def step():
            found.clear(), operations.clear()
            ours.step()

        gemm = counted(ops.gemm, lambda trans2=False, **more: 0 if trans2 else 1)
        kernels._launch, ops.gemm = timed_start, gemm
        try:
            seconds = self.seconds(step)
        finally:
            kernels._launch = start
            del ops.gemm
        self.seconds(nothing)
        empty = np.median([self.between(*pair) for pair in pairs])
        times, is_known = {}, not np.isnan(seconds)
        for name, first, last in found:
            own = max(0.0, self.between(first, last) - empty) if is_known else np.nan
            times.setdefault(name, []).append(own)
        return seconds, times, sum(operations)


def rate(step, wait, n_examples, n_steps):
    """Return the examples per second."""
    started = time.perf_counter()
    for number in range(n_steps):
        step(number)
    wait()
    return n_steps * n_examples / (time.perf_counter() - started)


def counts(cupy):
    """Return the launches, waits and copies from the host in a step of each case. The stand-in
    counts them."""
    found, size = {}, Size(is_quick=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            with ExitStack() as stack:
                ours = Ours(stack, Path(folder), name, size, gpu_id=0)
                counted = stack.enter_context(cupy.counted())
                ours.step()
            found[name] = [counted.launches, counted.waits, counted.h2d]
    return found


def counts_of_stand_in():
    """Return the same counts from a separate process; {} if it fails."""
    folders = [str(ROOT / "tests" / "stand_in"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, folders))
    command = [sys.executable, __file__, "--counts"]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"no launches are counted: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    return json.loads(done.stdout)


def markdown(rows):
    """Format a table. The first row is its header."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def measure(name, size, card, torch, counted, folder):
    """Return the row of the table of steps, and the rows for the case's kernels."""

    def shown(number, form="{:,.0f}"):
        is_known = card.is_real and number is not None and not np.isnan(number)
        return form.format(number) if is_known else "-"

    with ExitStack() as stack:
        ours = Ours(stack, folder, name, size, gpu_id=0)
        rivals = {"ours": (lambda number: ours.step(), ours.wait)}
        for number, step in enumerate(torch_steps(torch, name, ours.batches) if torch else ()):
            wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
            rivals[f"PyTorch {number}"] = step, wait
        for step, wait in rivals.values():
            rate(step, wait, ours.n_examples, size.steps)
        found = medians(
            in_turns(
                rivals,
                lambda rival: rate(*rivals[rival], ours.n_examples, size.steps),
                size.rounds,
            )
        )
        busy = card.seconds(ours.step, size.steps)
        bandwidth, products = card.limits(size, ours.ops)
        told_in, times, operations = card.told(ours)
        least_bytes = ours.least_bytes()
    with ExitStack() as stack:
        on_cpu = Ours(stack, folder, name, size, gpu_id=-1)
        n_steps = max(1, size.steps // 8)
        of_cpu = rate(lambda number: on_cpu.step(), on_cpu.wait, on_cpu.n_examples, n_steps)
    own = found.pop("ours")
    of_torch = max(found.values(), default=None)
    second = own / ours.n_examples
    launches, waits, copies = counted.get(name, ["-"] * 3)
    row = [
        name, shown(own), shown(of_torch),
        "-" if of_torch is None else shown(own / of_torch, "{:.2f}"),
        shown(1 - busy * second, "{:.1%}"), str(launches), str(waits), str(copies),
        shown(operations * second / products, "{:.1%}"),
        shown(least_bytes * second / bandwidth, "{:.1%}"),
        shown(of_cpu), shown(own / of_cpu, "{:.1f}"),
    ]  # fmt: skip
    lines = [
        [name, kernel, str(len(each)), shown(1e6 * sum(each), "{:,.1f}"),
         shown(sum(each) / told_in, "{:.1%}")]
        for kernel, each in sorted(times.items(), key=lambda pair: -sum(pair[1]))
    ]  # fmt: skip
    return row, lines if name in TOLD else []


HEADER = [
    "training step", "examples/s", "PyTorch", "x PyTorch", "GPU idle",
    "launches", "waits", "copies", "of product limit",
    "of memory limit (weights, rows of embeddings)", "one CPU thread", "x CPU thread",
]  # fmt: skip
OF_KERNELS = ["training step", "kernel (CuPy's own: none)", "launches", "us a step", "of the step"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--counts", action="store_true", help="only what the stand-in counts")
    arguments = parser.parse_args()
    try:
        ops = get_dialog_ops(0)
    except DialogError as error:
        print(f"skipped, it needs a GPU: {error}")
        return 1
    cupy = ops.xp
    is_stand_in = hasattr(cupy, "is_stand_in")
    if arguments.counts:
        print(json.dumps(counts(cupy)))
        return 0
    try:
        import torch
    except ImportError:
        torch = None
    size, card = Size(QUICK), Card(cupy)
    counted = counts(cupy) if is_stand_in else counts_of_stand_in()
    rows, lines = [HEADER], [OF_KERNELS]
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            row, of_kernels = measure(name, size, card, torch, counted, Path(folder))
            rows.append(row)
            lines += of_kernels
    if is_stand_in:
        print("No GPU: a stand-in for CuPy, which measures no times.")
    else:
        device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        with_torch = "no PyTorch" if torch is None else f"PyTorch {torch.__version__}"
        print(f"{device}, CuPy {cupy.__version__}, {with_torch}; medians of {size.rounds} rounds")
    print(f"\n{markdown(rows)}\n\n{markdown(lines)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
