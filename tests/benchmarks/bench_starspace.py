"""The embedding agent: examples a CPU-second beside ParlAI's, and two threads beside one.

2,000 generated examples of 10 + 10 words, 128 wide, 10 negatives, SGD and hinge on
cosines, as ParlAI's StarSpace agent has them by default: whole training (data, tokens,
negatives, kernel), the first epoch apart (it tokenizes), and the kernel alone. Beside
ParlAI 1.7.2 in the same run if PARLAI_PYTHON names the Python of an environment that has
it (and PARLAI_BENCH the folder of bench_starspace.py, ../shared/parlai_bench by default).

Two threads: replicas of one agent learn from batches of their own, of natural text where
../shared/data/self_dialogue is there, else of words drawn by Zipf's law. The cores of a
busy machine are throttled, so short bursts take turns with bursts of pure compute, and a
batch counts only if it ran undisturbed beside an undisturbed one of the other thread.

    PARLAI_PYTHON=~/parlai/bin/python python tests/benchmarks/bench_starspace.py
"""

import random
import sys
import threading
import time
from itertools import cycle
from typing import Any, Callable, Dict, List

import numpy as np
from measuring import DATA, Stopwatch, arithmetic, in_threads, in_turns, medians, parlai, read_rows

from thincdialog.batchers import Fixed
from thincdialog.cli.output import table
from thincdialog.data.tokenizers import WordTokenizer
from thincdialog.losses.ranking import RankingHinge, RankingSoftmax
from thincdialog.messages import Message
from thincdialog.models.star_space import StarSpace
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.ops.rows_apart import RowsApart
from thincdialog.optimizers.sparse_sgd import SparseSGD
from thincdialog.registry import registry
from thincdialog.runners.step import gather
from thincdialog.teachers.teacher import Teacher
from thincdialog.worlds import BatchWorld

N_EXAMPLES, N_WORDS, N_REPEATS, GOAL, EFFICIENCY = 2000, 10, 5, 150, 0.9
N_EPOCHS, SIZE = 5, 256
BURST_SECONDS, REST_SECONDS, N_BURSTS, N_NATURAL = 0.25, 0.5, 8, 40_000


def sentences() -> List[Message]:
    rng = random.Random(1)
    drawn = [[rng.randrange(1000) for _ in range(N_WORDS)] for _ in range(N_EXAMPLES)]
    return [Message(text=words(row), labels=[words(row, 1)]) for row in drawn]


def words(row: Any, more: int = 0) -> str:
    return " ".join(f"w{(number + more) % 1000}" for number in row)


def natural_text() -> List[Message]:
    """Turns and what was said before them."""
    file = DATA / "self_dialogue" / "train.jsonl.gz"
    if not file.is_file():
        rng = np.random.default_rng(0)
        drawn = [rng.zipf(1.3, size=(2, 12)) % 20000 for _ in range(N_NATURAL)]
        return [Message(text=words(a), labels=[words(b)]) for a, b in drawn]
    found: List[Message] = []
    for row in read_rows(file):
        turns = [turn["text"] for turn in row["turns"]]
        found += [Message(text=a, labels=[b]) for a, b in zip(turns, turns[1:])]
        if len(found) >= N_NATURAL:
            break
    return found


def build(examples: List[Message], loss: Any, scale: float = 1.0) -> Any:
    episodes = Teacher({"train": lambda: ([example] for example in examples)})
    teacher = episodes.for_split("train", training=True)
    with using_ops(get_dialog_ops(-1)):
        model = StarSpace(share="nothing", scale=scale)
        agent = registry.agents.get("thincdialog.StarSpace.v1")(model, loss=loss)
        agent.initialize(teacher, tokenizer=WordTokenizer())
    return agent, teacher


# --- one thread, beside ParlAI ------------------------------------------------------


def training(agent: Any, teacher: Teacher) -> Dict[str, float]:
    """Examples a CPU-second of whole epochs."""
    optimizer, step = SparseSGD(0.1), 0
    first, others = Stopwatch(), Stopwatch()
    with BatchWorld(teacher, agent, Fixed(SIZE)) as world:
        for epoch in range(N_EPOCHS):
            with others if epoch else first:
                world.start_epoch(epoch, 0)
                while not world.epoch_done():
                    gather(agent, world, 0, step, 1)
                    agent.update(optimizer)
                    step += 1
    return {
        "whole training, 5 epochs": N_EXAMPLES * N_EPOCHS / (first.seconds + others.seconds),
        "its first epoch": N_EXAMPLES / first.seconds,
        "its other epochs": N_EXAMPLES * (N_EPOCHS - 1) / others.seconds,
    }


def kernel_alone(agent: Any, teacher: Teacher) -> float:
    """Examples a CPU-second of ``update`` on new weights, the batches packed before."""
    optimizer, watch = SparseSGD(0.1), Stopwatch()
    with BatchWorld(teacher, agent, Fixed(SIZE)) as world:
        world.start_epoch(0, 0)
        gather(agent, world, 0, 0, N_EXAMPLES)
    with watch:
        agent.update(optimizer)
    return N_EXAMPLES / watch.seconds


def one_thread() -> bool:
    examples = sentences()

    def fresh() -> Any:
        return build(examples, RankingHinge(0.1))

    training(*fresh())  # Kernels are compiled, or read, at their first call.
    rounds: List[Dict[str, Any]] = []
    for _ in range(N_REPEATS):
        theirs = parlai("bench_starspace.py")
        alone = kernel_alone(*fresh())
        rounds.append({**training(*fresh()), "kernel alone, first epoch": alone})
        rounds[-1]["ParlAI 1.7.2"] = theirs and theirs["exs_per_cpu_s"]
    figures = medians({name: [each[name] for each in rounds] for name in rounds[0]})
    reference = figures["ParlAI 1.7.2"]
    print(f"{N_EXAMPLES:,} examples of 10 + 10 words, medians of {N_REPEATS}")
    known = {name: figure for name, figure in figures.items() if figure is not None}
    ratios = [f"{each / reference:.0f}" if reference else "-" for each in known.values()]
    rows = [[name, f"{each:,.0f}", x] for (name, each), x in zip(known.items(), ratios)]
    print(table([["", "examples/CPU-s", "x ParlAI"], *rows]))
    if not reference:
        print("ParlAI: not measured; name its Python in PARLAI_PYTHON")
        return True
    return figures["whole training, 5 epochs"] >= GOAL * reference


# --- two threads, beside one --------------------------------------------------------

Work = Callable[[int], int]


def learning(examples: List[Message], loss: Any, rate: float, apart: bool) -> Work:
    """A call learns from the thread's next batch and gives its number of examples."""
    agent, teacher = build(examples, loss, 10.0)
    packed: List[Any] = []
    with BatchWorld(teacher, agent, Fixed(128)) as world:
        world.start_epoch(0, 0)
        while not world.epoch_done():
            gather(agent, world, 0, len(packed), 1)
            packed += agent.counters.packs
            agent.reset_metrics()
    replicas: List[Any] = [agent.replica() for _ in range(2)]
    batches = [cycle(packed[thread::2]) for thread in range(2)]
    if not apart:
        for replica in replicas:
            replica.rows_apart = RowsApart(0)
    optimizer = SparseSGD(rate)

    def work(thread: int) -> int:
        pack, n_examples = next(batches[thread])
        losses = np.zeros(n_examples, dtype="f")
        replicas[thread].learn_pack(pack, optimizer, losses)
        return n_examples

    return work


def burst(n_threads: int, work: Work) -> List[np.ndarray]:
    """Of each thread, begin, end and seconds per item of its batches."""
    logs: List[List[Any]] = [[] for _ in range(n_threads)]
    gate = threading.Barrier(n_threads)

    def run(thread: int) -> None:
        gate.wait()
        begin = time.perf_counter()
        stop = begin + BURST_SECONDS
        while begin < stop:
            n = work(thread)
            end = time.perf_counter()
            logs[thread].append((begin, end, (end - begin) / n))
            begin = end

    in_threads(n_threads, run)
    time.sleep(REST_SECONDS)
    return [np.array(log) for log in logs]


def side_by_side(logs: List[np.ndarray], longest: float) -> np.ndarray:
    """Seconds per item of what ran undisturbed while the other thread did, too."""
    good = [log[log[:, 2] < longest] for log in logs]
    if len(logs) == 1:
        return good[0][:, 2]
    found = []
    for mine, others in (good, good[::-1]):
        for begin, end, seconds in mine:
            both = np.minimum(others[:, 1], end) - np.maximum(others[:, 0], begin)
            if both.clip(0).sum() >= 0.9 * (end - begin):
                found.append(seconds)
    return np.array(found)


def two_threads() -> bool:
    examples, compute = natural_text(), arithmetic()
    works: Dict[str, Work] = {"pure compute": lambda thread: int(compute(100_000) > 0)}
    for name, loss, rate in (("softmax", RankingSoftmax(), 0.02), ("hinge", RankingHinge(), 0.1)):
        for way in ("rows apart", "direct"):
            works[f"{name}, {way}"] = learning(examples, loss, rate, way == "rows apart")
    for work in works.values():
        for _ in range(20):
            work(0), work(1)
    keys = [(name, n_threads) for name in works for n_threads in (1, 2)]
    bursts = in_turns(keys, lambda key: burst(key[1], works[key[0]]), N_BURSTS)
    head = ["two threads, natural text", "us, 1", "us, 2", "speed-up", "of the ceiling", "batches"]
    rows, ceiling, efficiency = [head], 2.0, {}
    for name in works:
        alone = np.concatenate([logs[0][:, 2] for logs in bursts[name, 1]])
        longest = 2 * float(np.quantile(alone, 0.3))
        times = [
            np.concatenate([side_by_side(logs, longest) for logs in bursts[name, n]])
            for n in (1, 2)
        ]
        if not len(times[1]):
            print(f"{name}: not measured: the threads never ran at the same time")
            continue
        one, two = (float(np.median(found)) * 1e6 for found in times)
        if name == "pure compute":
            ceiling = 2 * one / two
        efficiency[name] = 2 * one / two / ceiling
        figures = (one, two, 2 * one / two, efficiency[name])
        rows.append([name, *(f"{each:.2f}" for each in figures), f"{len(times[1]):,}"])
    print("\n" + table(rows))
    return all(value >= EFFICIENCY for name, value in efficiency.items() if "apart" in name)


if __name__ == "__main__":
    is_fast = one_thread()
    sys.exit(0 if two_threads() and is_fast else 1)
