"""World loop: examples a second with an agent that does nothing.

20,000 single-turn examples of 10 words, one pass in BatchWorld of 64, beside
ParlAI's BatchWorld of 64 in the same run if PARLAI_PYTHON names the Python of an
environment that has ParlAI 1.7.2 (and PARLAI_BENCH the folder of bench_world.py
that times it, ../shared/parlai_bench by default). The two take turns.

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

from thincdialog.batchers import Fixed
from thincdialog.messages import Message, MessageBatch
from thincdialog.protocol import Agent
from thincdialog.registry import registry
from thincdialog.teachers.teacher import Teacher
from thincdialog.worlds import BatchWorld, PartnerWorld, World

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


def parlai_microseconds() -> Optional[float]:
    """The same pass in ParlAI with its SilentTorchAgent, or None if it is not there."""
    python = os.environ.get("PARLAI_PYTHON")
    if not python:
        return None
    here = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("PARLAI_BENCH", here.parent / "shared" / "parlai_bench"))
    command = [python, "bench_world.py", "single20k", "batch", "silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["us_per_ex"]


def main() -> int:
    teacher = make_teacher()
    worlds: Dict[str, World] = {
        f"BatchWorld({SIZE}), columns": BatchWorld(teacher, IdleColumnAgent(), Fixed(SIZE)),
        f"BatchWorld({SIZE}), copies": BatchWorld(teacher, IdleAgent(), Fixed(SIZE)),
        "PartnerWorld": PartnerWorld(teacher, IdleAgent()),
    }
    times: Dict[str, List[float]] = {name: [] for name in worlds}
    parlai: List[float] = []
    for _ in range(N_REPEATS):
        for name, world in worlds.items():
            times[name].append(microseconds(world))
        theirs = parlai_microseconds()
        if theirs is not None:
            parlai.append(theirs)
    reference = statistics.median(parlai) if parlai else None
    print(f"{N_EXAMPLES:,} single-turn examples, idle agent, medians of {N_REPEATS} passes")
    print(f"{'world':28}{'examples/s':>12}{'µs/example':>12}{'x ParlAI':>10}")
    for name, values in times.items():
        median = statistics.median(values)
        ratio = f"{reference / median:.1f}" if reference else "-"
        print(f"{name:28}{1e6 / median:12,.0f}{median:12.2f}{ratio:>10}")
    if reference is None:
        print("ParlAI: not measured; name its Python in PARLAI_PYTHON")
        return 0
    print(f"{'ParlAI 1.7.2 BatchWorld(64)':28}{1e6 / reference:12,.0f}{reference:12.2f}{1:>10}")
    best = min(statistics.median(values) for values in times.values())
    return 0 if reference / best >= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
