"""Compare the embedding agent with ParlAI's in examples per CPU second, and two threads with one.

There are 2,000 generated examples of 10 + 10 words, 128 wide, 10 negatives, SGD and hinge loss on
cosines: the defaults of ParlAI's StarSpace agent. Timed are whole training (data, tokens,
negatives, kernel), the first epoch separately (it tokenizes), and the kernel alone. ParlAI 1.7.2
is measured in the same run if PARLAI_PYTHON names the Python of an environment that has it
(PARLAI_BENCH: the folder of bench_starspace.py, ../shared/parlai_bench by default).

Two threads: replicas of one agent train on different batches. The text is natural if there is
../shared/data/self_dialogue, otherwise words drawn by Zipf's law; training uses copies of rows
(``RowsApart``) or the table directly. The cores of a busy machine are throttled, so short bursts
take turns with bursts of pure computing, on one thread and on two.

    PARLAI_PYTHON=~/parlai/bin/python python tests/benchmarks/bench_starspace.py
"""

import random
import time
from itertools import cycle
from typing import Any, Callable, Dict, Iterator, List

import numpy as np
from measuring import Stopwatch, arithmetic, burst, first_rows, in_turns, medians, parlai, sized

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
from thincdialog.runners.alone import gather, one_step
from thincdialog.teachers.teacher import Teacher
from thincdialog.worlds import BatchWorld

N_WORDS, SIZE, N_CONVERSATIONS = 10, 256, 2_700
N_EXAMPLES, N_REPEATS, N_EPOCHS = sized((2000, 5, 5), (300, 1, 2))
BURST_SECONDS, REST_SECONDS, N_BURSTS = sized((0.25, 0.5, 9), (0.02, 0.0, 1))


def sentences() -> Iterator[Message]:
    rng = random.Random(1)
    for _ in range(N_EXAMPLES):
        row = [rng.randrange(1000) for _ in range(N_WORDS)]
        text, label = (" ".join(f"w{(word + more) % 1000}" for word in row) for more in (0, 1))
        yield Message(text=text, labels=[label])


def natural_text() -> List[Message]:
    """Return turns with the turns before them."""
    found: List[Message] = []
    for row in first_rows("self_dialogue/train.jsonl.gz", N_CONVERSATIONS):
        turns = [turn["text"] for turn in row["turns"]]
        found += [Message(text=a, labels=[b]) for a, b in zip(turns, turns[1:])]
    return found


def build(examples: List[Message], loss: Any, scale: float = 1.0) -> Any:
    episodes = Teacher({"train": lambda: ([example] for example in examples)})
    teacher = episodes.for_split("train", training=True)
    with using_ops(get_dialog_ops(-1)):
        model = StarSpace(share="nothing", scale=scale)
        agent = registry.agents.get("thincdialog.StarSpace.v1")(model, loss=loss)
        agent.initialize(teacher, tokenizer=WordTokenizer())
    return agent, teacher


# --- one thread, compared with ParlAI ------------------------------------------------


def training(agent: Any, teacher: Teacher) -> Dict[str, float]:
    """Return the examples per CPU second of whole epochs."""
    optimizer, step = SparseSGD(0.1), 0
    first, others = Stopwatch(), Stopwatch()
    with BatchWorld(teacher, agent, Fixed(SIZE)) as world:
        for epoch in range(N_EPOCHS):
            with others if epoch else first:
                world.start_epoch(epoch, 0)
                while not world.epoch_done():
                    step += 1
                    one_step(agent, world, optimizer, 0, step, 1)
    return {
        "whole training": N_EXAMPLES * N_EPOCHS / (first.seconds + others.seconds),
        "its first epoch": N_EXAMPLES / first.seconds,
        "its other epochs": N_EXAMPLES * (N_EPOCHS - 1) / others.seconds,
    }


def kernel_alone(agent: Any, teacher: Teacher) -> float:
    """Return the examples per CPU second of ``update`` on new weights, with batches packed in
    advance."""
    optimizer, watch = SparseSGD(0.1), Stopwatch()
    with BatchWorld(teacher, agent, Fixed(SIZE)) as world:
        world.start_epoch(0, 0)
        gather(agent, world, 0, 1, N_EXAMPLES)
        with watch:  # Before the world ends: it refuses an epoch without an update.
            agent.update(optimizer)
    return N_EXAMPLES / watch.seconds


def one_thread() -> None:
    examples = list(sentences())

    def fresh() -> Any:
        return build(examples, RankingHinge(0.1))

    training(*fresh())  # Kernels are compiled, or loaded, at their first call.
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


# --- two threads, compared with one --------------------------------------------------

Work = Callable[[int], int]


def learning(examples: List[Message], loss: Any, rate: float, apart: bool) -> Work:
    """Each call trains on the thread's next batch and returns its number of examples."""
    agent, teacher = build(examples, loss, 10.0)
    packed: List[Any] = []
    with BatchWorld(teacher, agent, Fixed(128)) as world:
        world.start_epoch(0, 0)
        while not world.epoch_done():
            gather(agent, world, 0, len(packed) + 1, 1)
            packed += agent.tally.packs
            agent.give_up()  # Only the packed batches are needed, each once.
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


def two_threads() -> None:
    examples, compute = natural_text(), arithmetic()
    works: Dict[str, Work] = {"pure compute": lambda thread: int(compute(100_000) > 0)}
    for name, loss, rate in (("softmax", RankingSoftmax(), 0.02), ("hinge", RankingHinge(), 0.1)):
        for way in ("rows apart", "direct"):
            works[f"{name}, {way}"] = learning(examples, loss, rate, way == "rows apart")
    for work in works.values():
        for _ in range(20):
            work(0), work(1)
    keys = [(name, n_threads) for name in works for n_threads in (1, 2)]

    def measure(key: Any) -> float:
        time.sleep(REST_SECONDS)
        return burst(key[1], works[key[0]], BURST_SECONDS)

    rates = in_turns(keys, measure, N_BURSTS)
    gains = {name: np.divide(rates[name, 2], rates[name, 1]) for name in works}
    rows = [["two threads, natural text", "1 thread, a second", "2 threads", "x", "of the ceiling"]]
    for name, gain in gains.items():
        of_one, of_two = (f"{np.median(rates[name, n]):,.0f}" for n in (1, 2))
        ratios = (gain, gain / gains["pure compute"])
        rows.append([name, of_one, of_two, *(f"{np.median(each):.2f}" for each in ratios)])
    print("\n" + table(rows))


if __name__ == "__main__":
    one_thread()
    two_threads()
