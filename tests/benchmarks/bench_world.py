"""World loop: examples a second with an agent that does nothing.

20,000 single-turn examples of 10 words, one pass in each world, beside ParlAI in the
same run if PARLAI_PYTHON names the Python of an environment that has ParlAI 1.7.2 (and
PARLAI_BENCH the folder of bench_world.py that times it, ../shared/parlai_bench by
default): BatchWorld of 64 beside its BatchWorld of 64, DynamicBatchWorld beside its
dynamic batching, "full". The two take turns.

    PARLAI_PYTHON=~/parlai/bin/python python tests/benchmarks/bench_world.py
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

from thincdialog.batchers import Batchsort, Fixed, Words
from thincdialog.messages import Message, MessageBatch
from thincdialog.protocol import Agent
from thincdialog.registry import registry
from thincdialog.teachers.teacher import Teacher
from thincdialog.worlds import BatchWorld, DynamicBatchWorld, PartnerWorld, World, batch_world

N_EXAMPLES, N_WORDS, SIZE, N_REPEATS = 20_000, 10, 64, 5


class IdleAgent(Agent):
    """Observes and answers with an empty message; takes no columns."""

    def batch_act(self, observations):
        return [Message() for _ in observations]


class IdleColumnAgent(IdleAgent):
    """The same in columns."""

    def batch_observe(self, messages):
        return messages

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
    """One pass, in µs of wall time an example."""
    world.reset_metrics()
    world.start_epoch(0, 0)
    start = time.perf_counter()
    while not world.epoch_done():
        world.parley()
    seconds = time.perf_counter() - start
    assert world.report()["examples"].value() == N_EXAMPLES
    return seconds / N_EXAMPLES * 1e6


def parlai_microseconds(kind: str) -> Optional[float]:
    """The same pass in ParlAI with its SilentTorchAgent, or None if it is not there.

    kind (str): Its world: "batch", or "full" for dynamic batching.
    """
    python = os.environ.get("PARLAI_PYTHON")
    if not python:
        return None
    here = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("PARLAI_BENCH", here.parent / "shared" / "parlai_bench"))
    command = [python, "bench_world.py", "single20k", kind, "silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["us_per_ex"]


def make_worlds(teacher: Teacher) -> Dict[str, Dict[str, World]]:
    """The worlds to time, by the kind of ParlAI's that does the same."""
    sort, words = Batchsort(SIZE), Words(2 * N_WORDS * SIZE)
    return {
        "batch": {
            f"BatchWorld({SIZE}), columns": BatchWorld(teacher, IdleColumnAgent(), Fixed(SIZE)),
            f"BatchWorld({SIZE}), copies": BatchWorld(teacher, IdleAgent(), Fixed(SIZE)),
            "PartnerWorld": PartnerWorld(teacher, IdleAgent()),
        },
        "full": {
            "DynamicBatchWorld, Batchsort": DynamicBatchWorld(teacher, IdleAgent(), sort),
            "DynamicBatchWorld, Words": DynamicBatchWorld(teacher, IdleAgent(), words),
            # A teacher of its own: one teacher hands out one kind of batches.
            "BatchWorld, columns, Words": batch_world(make_teacher(), IdleColumnAgent(), words),
        },
    }


def main() -> int:
    worlds = make_worlds(make_teacher())
    times: Dict[str, List[float]] = {name: [] for kind in worlds.values() for name in kind}
    parlai: Dict[str, List[float]] = {kind: [] for kind in worlds}
    for _ in range(N_REPEATS):
        for kind, ours in worlds.items():
            for name, world in ours.items():
                times[name].append(microseconds(world))
            theirs = parlai_microseconds(kind)
            if theirs is not None:
                parlai[kind].append(theirs)
    print(f"{N_EXAMPLES:,} single-turn examples, idle agent, medians of {N_REPEATS} passes")
    print(f"{'world':30}{'examples/s':>12}{'µs/example':>12}{'x ParlAI':>10}")
    is_fast = True
    for kind, ours in worlds.items():
        reference = statistics.median(parlai[kind]) if parlai[kind] else None
        best = 0.0
        for name in ours:
            median = statistics.median(times[name])
            best = max(best, reference / median if reference else 0.0)
            ratio = f"{reference / median:.1f}" if reference else "-"
            print(f"{name:30}{1e6 / median:12,.0f}{median:12.2f}{ratio:>10}")
        if reference:
            name = f"ParlAI 1.7.2, {kind}({SIZE})"
            print(f"{name:30}{1e6 / reference:12,.0f}{reference:12.2f}{1:>10}")
            is_fast = is_fast and best >= 10
    if not any(parlai.values()):
        print("ParlAI: not measured; name its Python in PARLAI_PYTHON")
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
