"""Compare readers that wait, that compute and that are fast, with and without workers; and
streamed data with the same data in memory.

Rows have the shape of SNLI's, and 320 are shuffled together. Each line compares two ways in one
run, in turns, median of 5: how many times as fast the second is as the first. The ceiling next to
it, measured in the same turns, is the gain of two or five processes that only sleep or only
compute. Other work on the machine lowers both.

    python tests/benchmarks/bench_loader.py [waiting] [computing] [fast] [stream]
"""

import contextlib
import gc
import io
import json
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from measuring import SMALL, first_rows, sized

from thincdialog.batchers import Fixed
from thincdialog.loader.readers import Readers
from thincdialog.messages import Message
from thincdialog.teachers import Teacher

N_ROWS, N_ROUNDS, BATCH, WINDOW = sized((20_000, 5, 32, 320), (200, 1, 8, 8))
N_BATCHES, SPIN = sized((30, 0.5), (2, 0.01))


def rows():
    rng = random.Random(0)

    def text(low, high):
        return " ".join(f"w{int(20000 ** rng.random())}" for _ in range(rng.randint(low, high)))

    return [json.dumps({"text": text(5, 25), "label": text(2, 16)}) for _ in range(N_ROWS)]


def spin(seconds):
    """Compute for this many seconds of this thread's CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Rows:
    """Rows as a custom dataset yields them. Reading a row sleeps or computes for some seconds."""

    def __init__(self, n, sleep=0.0, compute=0.0):
        self.lines, self.sleep, self.compute = rows()[:n], sleep, compute

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, number):
        row = json.loads(self.lines[number])
        if self.sleep:
            time.sleep(self.sleep)
        if self.compute:
            spin(self.compute)
        return [Message(text=row["text"], labels=[row["label"]])]


def epoch(source, workers, n_batches=None):
    """Return the seconds until `n_batches` batches have been read; all batches if None."""
    made = Teacher({"train": source}, streaming=True, single_turn=True, shuffle_window=WINDOW)
    if workers is not None:
        made.read_with(Readers(workers))
    teacher = made.for_split("train", training=True)
    teacher.set_batches(Fixed(BATCH))
    begin = time.perf_counter()
    teacher.start_epoch(0, 0)
    n_seen = 0
    # Do not ask whether there are more batches after the last one.
    while n_seen != n_batches and not teacher.epoch_done():
        teacher.batch_observe([{}] * len(teacher.batch_act()))
        n_seen += 1
    return time.perf_counter() - begin


def in_processes(n, work):
    """Return the seconds that n processes take for the work, once they are forked and ready."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(n + 1)

    def run():
        barrier.wait()
        work()

    processes = [context.Process(target=run) for _ in range(n)]
    for process in processes:
        process.start()
    barrier.wait()
    begin = time.perf_counter()
    for process in processes:
        process.join()
    return time.perf_counter() - begin


def ceiling(n, work):
    """Return how much more work n processes do than one."""
    return n * in_processes(1, work) / in_processes(n, work)


def compare(name, goal, alone, helped, most):
    """Measure two ways in turns, and print how many times as fast the second is as the first."""
    helped()  # Starts the fork server, as in a run.
    ratios, ceilings = [], []
    for _ in range(N_ROUNDS):
        seconds = alone()
        ratios.append(seconds / helped())
        ceilings.append(most())
    low, high = min(ratios), max(ratios)
    print(
        f"{name:48} {statistics.median(ratios):6.2f} ({low:.2f} to {high:.2f})  goal {goal:4} "
        f"ceiling {statistics.median(ceilings):5.2f}",
        flush=True,
    )


def waiting():
    source = Rows(N_ROWS, sleep=0.01)
    sleeping = partial(ceiling, 5, lambda: [time.sleep(0.01) for _ in range(50)])
    for workers, goal in sized(((5, 4.9), ("auto", 7)), ((2, 2),)):
        name = f"sleeps 0.01 s, {N_BATCHES} batches, workers = {workers}"
        helped = partial(epoch, source, workers, N_BATCHES)
        compare(name, goal, partial(epoch, source, None, N_BATCHES), helped, sleeping)


def computing():
    source = Rows(N_ROWS, compute=0.00056)
    pure = partial(ceiling, 2, lambda: spin(SPIN))
    helped, alone = partial(epoch, source, 2), partial(epoch, source, None)
    compare(f"computes 0.56 ms, {N_ROWS:,} rows, workers = 2", 1.9, alone, helped, pure)


def fast():
    source = Rows(N_ROWS)
    pure = partial(ceiling, 2, lambda: spin(SPIN / 5))
    for n_batches, what in ((None, f"{N_ROWS:,} rows"), (N_BATCHES, f"{N_BATCHES} batches")):
        for workers in sized((1, 2, 5, "auto"), (2,)):
            goal = 0.8 if n_batches else 0.97 if workers == "auto" else 0.95
            helped = partial(epoch, source, workers, n_batches)
            alone = partial(epoch, source, None, n_batches)
            compare(f"fast, {what}, workers = {workers}", goal, alone, helped, pure)


class Training:
    """Training of ranker.cfg, one epoch at a time."""

    def __init__(self, folder, streaming, workers):
        from thincdialog.config.shipped import find_shipped
        from thincdialog.training.experiment import Experiment
        from thincdialog.training.interruption import Interruption

        overrides = {
            "paths.train": str(folder / "train.jsonl"),
            "tasks.dialogue.streaming": streaming,
            "loader.workers": workers,
            "loader.shuffle_window": 8192,
            **SMALL,
        }
        self.experiment = Experiment.from_config(find_shipped("ranker.cfg"), overrides)
        with self.experiment.working():
            teacher = self.experiment.training_split(with_metrics=False)
            self.experiment.initialize(teacher, io.StringIO())
            self.runner = self.experiment.runner
            self.runner.begin(self.experiment, teacher, Interruption(), lambda line: None)
        self.number = 0

    def epoch(self):
        """Return the seconds for 100,000 examples: in all, and the CPU seconds of the training
        thread."""
        self.number += 1
        n_examples = n_steps = 0
        begin, computed = time.perf_counter(), time.thread_time()
        with self.experiment.working():
            self.runner.start_epoch(self.number)
            while not self.runner.epoch_done():
                for report in self.runner.take(n_steps, 1):
                    n_examples, n_steps = n_examples + report.examples, n_steps + 1
        each = 100_000 / n_examples
        return each * (time.perf_counter() - begin), each * (time.thread_time() - computed)


def stream():
    pure = partial(ceiling, 2, lambda: spin(SPIN))
    with tempfile.TemporaryDirectory() as name:
        found = first_rows("self_dialogue/train.jsonl.gz", 12_000)
        with open(Path(name) / "train.jsonl", "w") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in found)
        ways = {"held": Training(Path(name), False, 0)}
        for workers in sized((0, 1, 2, "auto"), (2,)):
            ways[f"workers = {workers}"] = Training(Path(name), True, workers)
        for way in ways.values():
            way.epoch()
        gc.freeze()  # Garbage collection of one training does not search the objects of the others.
        measured = {way: [] for way in ways}
        ceilings = []
        for _ in range(N_ROUNDS):
            for way, training in ways.items():
                measured[way].append(training.epoch())
            ceilings.append(pure())
    print("ranker.cfg, seconds for 100,000 examples: all, and CPU seconds of the training thread")
    held = measured["held"]
    for way, seconds in measured.items():
        wall, own = (statistics.median(each) for each in zip(*seconds))
        ratio = statistics.median(one[0] / other[0] for one, other in zip(held, seconds))
        of_thread = statistics.median(one[1] / other[1] for one, other in zip(held, seconds))
        print(
            f"  {way:16} {wall:6.2f} {own:6.2f}   held / this {ratio:5.2f} (goal 0.9), of the "
            f"thread {of_thread:5.2f}"
        )
    print(f"  two processes that compute: {statistics.median(ceilings):.2f} times one")


def main():
    parts = {"waiting": waiting, "computing": computing, "fast": fast, "stream": stream}
    for name in sys.argv[1:] or parts:
        with contextlib.suppress(KeyboardInterrupt):
            parts[name]()


if __name__ == "__main__":
    main()
