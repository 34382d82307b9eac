"""Measure the loop of a world: examples per second with an agent that does nothing.

Each world makes one pass over 20,000 single-turn examples of 10 words. ParlAI is measured in the
same run if PARLAI_PYTHON names the Python of an environment that has ParlAI 1.7.2 (PARLAI_BENCH:
the folder of its bench_world.py, ../shared/parlai_bench by default): BatchWorld of 64 is compared
with ParlAI's BatchWorld of 64, and DynamicBatchWorld with ParlAI's dynamic batching, "full". The
two take turns.

    PARLAI_PYTHON=~/parlai/bin/python python tests/benchmarks/bench_world.py
"""

import random
import time
from typing import Dict, Optional

from measuring import in_turns, medians, parlai, sized

from thincdialog.batchers import Batchsort, Fixed, Words
from thincdialog.cli.output import table
from thincdialog.messages import Message, MessageBatch
from thincdialog.protocol import Agent
from thincdialog.registry import registry
from thincdialog.teachers.teacher import Teacher
from thincdialog.worlds import BatchWorld, DynamicBatchWorld, PartnerWorld, World

N_WORDS, SIZE, N_EXAMPLES, N_REPEATS = 10, 64, *sized((20_000, 5), (1_000, 1))


class IdleAgent(Agent):
    """Observes and answers with an empty message."""

    def batch_act(self, observations):
        return [Message() for _ in observations]


class IdleBatchAgent(IdleAgent):
    """An idle agent that handles whole batches."""

    takes_batches = True

    def batch_act(self, observations):
        return MessageBatch({}, len(observations))


def sentence(rng: random.Random) -> str:
    return " ".join(f"w{rng.randrange(1000)}" for _ in range(N_WORDS))


def episodes():
    rng = random.Random(1)
    for _ in range(N_EXAMPLES):
        yield [Message(text=sentence(rng), labels=[sentence(rng)])]


def make_teacher() -> Teacher:
    teacher = Teacher({"train": episodes}).for_split("train")
    names = ("thincdialog.Accuracy.v1", "thincdialog.F1.v1")
    teacher.set_metrics([registry.metrics.get(name)() for name in names])
    assert teacher.n_examples == N_EXAMPLES  # reads the data
    return teacher


def microseconds(world: World) -> float:
    """Run one pass. Return the microseconds of wall time per example."""
    world.reset_metrics()
    world.start_epoch(0, 0)
    start = time.perf_counter()
    while not world.epoch_done():
        world.parley()
    seconds = time.perf_counter() - start
    assert world.report()["examples"].value() == N_EXAMPLES
    return seconds / N_EXAMPLES * 1e6


def make_worlds(teacher: Teacher) -> Dict[str, Dict[str, World]]:
    """Make the worlds to time, grouped by the kind of ParlAI's that does the same."""
    sort, words = Batchsort(SIZE), Words(2 * N_WORDS * SIZE)
    return {
        "batch": {
            f"BatchWorld({SIZE}), whole": BatchWorld(make_teacher(), IdleBatchAgent(), Fixed(SIZE)),
            f"BatchWorld({SIZE}), copies": BatchWorld(teacher, IdleAgent(), Fixed(SIZE)),
            "PartnerWorld": PartnerWorld(teacher, IdleAgent()),
        },
        "full": {
            "DynamicBatchWorld, Batchsort": DynamicBatchWorld(teacher, IdleAgent(), sort),
            "DynamicBatchWorld, Words": DynamicBatchWorld(teacher, IdleAgent(), words),
            "BatchWorld, whole, Words": BatchWorld(make_teacher(), IdleBatchAgent(), words),
        },
    }


def main() -> None:
    kinds = make_worlds(make_teacher())
    worlds = {name: world for kind in kinds.values() for name, world in kind.items()}

    def measure(name: str) -> Optional[float]:
        if name in worlds:
            return microseconds(worlds[name])
        found = parlai("bench_world.py", "single20k", name, "silent")
        return found and found["us_per_ex"]

    names = [name for kind, ours in kinds.items() for name in (*ours, kind)]
    times = medians(in_turns(names, measure, N_REPEATS))
    print(f"{N_EXAMPLES:,} single-turn examples, idle agent, medians of {N_REPEATS} passes")
    rows = [["world", "examples/s", "µs/example", "x ParlAI"]]
    for kind, ours in kinds.items():
        reference = times[kind]
        found = {name: times[name] for name in ours}
        if reference:
            found[f"ParlAI 1.7.2, {kind}({SIZE})"] = reference
        for name, time_ in found.items():
            ratio = f"{reference / time_:.1f}" if reference else "-"
            rows.append([name, f"{1e6 / time_:,.0f}", f"{time_:.2f}", ratio])
    print(table(rows))
    if not any(times[kind] for kind in kinds):
        print("ParlAI: not measured; name its Python in PARLAI_PYTHON")


if __name__ == "__main__":
    main()
