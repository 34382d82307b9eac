"""What bench_hogwild.py has workers do: train models, or compute without anything shared."""

import gzip
import json
import multiprocessing
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from thincdialog.parallel import ProcessWorkers, Recipe, ThreadWorkers
from thincdialog.training.hogwild import Order, hogwild_world
from thincdialog.training.hogwild_checks import check_hogwild
from thincdialog.training.steps import Steps
from thincdialog.training.task import split_of
from threadpoolctl import threadpool_limits

from thincdialog.config import load_config, resolve_config
from thincdialog.ops.choice import ops_to_train, using_ops
from thincdialog.worlds import HogwildWorld, World, WorldWorker

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
N_DIALOGUES, N_TEXTS = 4000, 15000


class Burst(NamedTuple):
    """What workers did for a moment.

    rate (float): Examples (or calls) a second, of all of them.
    per_cpu (float): Examples per second of CPU time, this process's share included.
    waiting (float): Share of the time in which workers waited for something else than a
        core: for the GIL, or for an order.
    """

    rate: float
    per_cpu: float
    waiting: float


class Watched:
    """Workers, and when each of their answers came.

    workers (Workers): Who do the work.
    """

    def __init__(self, workers: Any):
        self.workers, self.n_workers = workers, workers.n_workers
        self.ask, self.stop = workers.ask, workers.stop
        self.answers: List[Tuple[int, float, int]] = []

    def wait(self, seconds: float) -> Any:
        answer = self.workers.wait(seconds)
        if answer is not None and answer.call == "parley" and answer.value.has_parleyed:
            result = answer.value.result
            n = result.examples if hasattr(result, "examples") else 1
            self.answers.append((answer.worker, time.perf_counter(), n))
        return answer


class Work:
    """Some workers that can be let go for a moment.

    world (HogwildWorld): Of all of them.
    settings (Dict[str, float]): Of the optimizer.
    """

    def __init__(self, world: HogwildWorld, settings: Optional[Dict[str, float]] = None):
        self.world, self.settings = world, settings or {}
        self.watched = Watched(world.workers)
        world.workers = self.watched  # type: ignore[assignment]
        self.n_steps = self.n_epochs = 0

    def burst(self, seconds: float) -> Burst:
        """Release parleys for so long, and wait for the last ones."""
        world, n = self.world, self.watched.n_workers
        if self.n_steps == 0 or world.epoch_done():
            self._start_epoch()
        self.watched.answers.clear()
        tasks = _tasks()
        cpu, used = _cpu(tasks), _cpu(tasks, of_workers=True)
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            if world.epoch_done():
                self._start_epoch()
            self.n_steps += 1
            world.parley(Order(self.n_steps, self.settings))
        world.drain()
        world.finished()
        cpu, used = _cpu(tasks) - cpu, _cpu(tasks, of_workers=True) - used
        counts: Counter = Counter()
        ends: Dict[int, float] = {}
        for worker, at, n_examples in self.watched.answers:
            counts[worker] += n_examples
            ends[worker] = at
        # Each to its own last answer: the others may be a step longer at it.
        rate = sum(counts[worker] / (at - began) for worker, at in ends.items())
        wall = sum(at - began for at in ends.values())
        waiting = 1 - used / wall if len(ends) == n else float("nan")
        return Burst(rate, sum(counts.values()) / max(cpu, 1e-9), waiting)

    def _start_epoch(self) -> None:
        self.world.start_epoch(self.n_epochs, 0)
        self.n_epochs += 1

    def close(self) -> None:
        self.world.shutdown()


class Alone:
    """A run without [hogwild]: no replica, no orders, no copies of rows. Products of matrices
    take one core, as a worker's do.

    steps (Steps): Its steps.
    ops (Ops): Those that it trains on.
    """

    def __init__(self, steps: Steps, ops: Any):
        self.steps, self.ops = steps, ops
        self.n_steps = self.n_epochs = 0

    def burst(self, seconds: float) -> Burst:
        world, n_examples = self.steps.world, 0
        with threadpool_limits(1), using_ops(self.ops):
            cpu, began = time.process_time(), time.perf_counter()
            while time.perf_counter() - began < seconds:
                if self.n_steps == 0 or world.epoch_done():
                    world.start_epoch(self.n_epochs, 0)
                    self.n_epochs += 1
                n_examples += sum(each.examples for each in self.steps.take(self.n_steps, 1))
                self.n_steps += 1
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Burst(n_examples / wall, n_examples / cpu, 0.0)

    def close(self) -> None:
        self.steps.world.shutdown()


class Apart:
    """Trainings that share nothing but the machine, each in a process of its own.

    works (List[Work]): Of one worker each.
    """

    def __init__(self, works: List[Work]):
        self.works = works

    def burst(self, seconds: float) -> Burst:
        """All of them at once; of CPU time and waiting nothing is said."""
        with ThreadPoolExecutor(len(self.works)) as pool:
            bursts = list(pool.map(lambda work: work.burst(seconds), self.works))
        return Burst(sum(burst.rate for burst in bursts), float("nan"), float("nan"))

    def close(self) -> None:
        for work in self.works:
            work.close()


def _tasks() -> Dict[str, bool]:
    """Threads of this process and of its children: where Linux counts their time, and
    whether they are workers."""
    workers = {t.native_id for t in threading.enumerate() if t.name.startswith("worker ")}
    found = {}
    for pid in (os.getpid(), *(child.pid for child in multiprocessing.active_children())):
        for task in Path(f"/proc/{pid}/task").iterdir():
            tid = int(task.name)
            is_worker = tid in workers or (tid == pid and pid != os.getpid())
            found[str(task / "schedstat")] = is_worker
    return found


def _cpu(tasks: Dict[str, bool], of_workers: bool = False) -> float:
    """Seconds computed; of workers, those spent in line for a core, too."""
    total = 0
    for path, is_worker in tasks.items():
        try:
            computed, in_line, _ = map(int, Path(path).read_text().split())
        except OSError:  # A thread that has ended meanwhile.
            continue
        if not of_workers:
            total += computed
        elif is_worker:
            total += computed + in_line
    return total / 1e9


# --- pure computing -------------------------------------------------------------------


class Nothing(World):
    """Parleys without anybody."""

    def __init__(self) -> None:
        super().__init__([])

    def start_epoch(self, epoch: int, seed: int) -> None:
        pass

    def epoch_done(self) -> bool:
        return False


class Spinner(WorldWorker):
    """Computes for some ten milliseconds in a core's own cache, without the GIL."""

    def __init__(self) -> None:
        super().__init__(Nothing())
        self.a = np.random.default_rng(0).normal(size=(96, 96)).astype("f") / 20
        self.b = np.empty_like(self.a)
        self.spin = _spin_kernel()
        self.learn(None)

    def learn(self, order: Any) -> None:
        if self.spin is not None:
            self.spin(4_000_000)
        else:
            for _ in range(200):
                np.matmul(self.a, self.a, out=self.b)


def _spin_kernel() -> Any:
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(nogil=True)
    def spin(n):
        x = 1.0
        for i in range(n):
            x = x * 0.999999 + i
        return x

    return spin


def make_spinner(number: int, arrays: Any) -> Spinner:
    return Spinner()


def spin(executor: str, n: int) -> Work:
    """Workers that compute."""
    if executor == "thread":
        return Work(HogwildWorld(ThreadWorkers(lambda number: Spinner(), n)))
    return Work(HogwildWorld(ProcessWorkers(Recipe(make_spinner, {}), n)))


# --- training -------------------------------------------------------------------------


def conversations(folder: Path) -> Tuple[Path, str]:
    """Some of the Self-dialogue Corpus, or words drawn by Zipf's law; a file, and its name."""
    path = folder / "dialogues.jsonl"
    source = DATA / "self_dialogue" / "train.jsonl.gz"
    if source.exists():
        with gzip.open(source, "rt", encoding="utf-8") as lines, path.open("w") as file:
            file.writelines(line for line, _ in zip(lines, range(N_DIALOGUES)))
        return path, "Self-dialogue Corpus"
    rng = random.Random(0)
    with path.open("w") as file:
        for number in range(N_DIALOGUES):
            texts = [_zipf_text(rng) for _ in range(16)]
            turns = [{"speaker": "ab"[i % 2], "text": text} for i, text in enumerate(texts)]
            file.write(json.dumps({"id": str(number), "turns": turns}) + "\n")
    return path, "words drawn by Zipf's law"


def labelled_texts(folder: Path) -> Tuple[Path, str]:
    """CLINC150's training texts, or words drawn by Zipf's law."""
    path = folder / "labelled.jsonl"
    source = DATA / "clinc150" / "full" / "train.jsonl.gz"
    if source.exists():
        path.write_bytes(gzip.decompress(source.read_bytes()))
        return path, "CLINC150"
    rng = random.Random(0)
    with path.open("w") as file:
        for _ in range(N_TEXTS):
            text = _zipf_text(rng)
            file.write(json.dumps({"text": text, "label": text[:2]}) + "\n")
    return path, "words drawn by Zipf's law"


def _zipf_text(rng: random.Random) -> str:
    return " ".join(f"w{int(20000 ** rng.random())}" for _ in range(rng.randint(3, 17)))


def bilstm() -> Dict[str, Any]:
    """configs/ranker.cfg with another encoder, and batches of 64."""
    config = load_config(CONFIGS / "ranker.cfg", {}).config
    encoder = {"@models": "thincdialog.BiLSTMEncoder.v1", "width": 128, "dropout": 0.0}
    config["agent"]["model"]["encoder"] = encoder
    config["world"]["batcher"]["size"] = 64
    return config


def alone(config: Any, overrides: Dict[str, Any]) -> Alone:
    """Training as a config says, without [hogwild]."""
    checked = load_config(config, overrides)
    ops = ops_to_train(checked.interpolated["system"])
    with using_ops(ops):
        parts, teacher = _begin(checked)
        world = parts["world"](teacher, parts["agent"])
        settings = SimpleNamespace(
            optimizer=parts["training"]["optimizer"],
            seed=0,
            accumulate_gradient=parts["training"]["accumulate_gradient"],
        )
    return Alone(Steps(parts["agent"], world, settings), ops)  # type: ignore[arg-type]


def _begin(checked: Any) -> Tuple[Dict[str, Any], Any]:
    """What a config describes, with its agent initialised; and the teacher."""
    parts = resolve_config(checked)
    teacher = split_of(checked, parts, "train", training=True)
    parts["agent"].initialize(teacher, tokenizer=parts["tokenizer"], seed=0)
    return parts, teacher


def train(config: Any, executor: str, n: int, overrides: Dict[str, Any]) -> Work:
    """Workers that train as a config says; with orders and a replica for one (n = 1), too."""
    asked = {"hogwild.workers": n, "hogwild.executor": executor, **overrides}
    checked = load_config(config, asked)
    with using_ops(ops_to_train(checked.interpolated["system"])):
        parts, teacher = _begin(checked)
        check_hogwild(checked, parts)
        agent, optimizer = parts["agent"], parts["training"]["optimizer"]
        world = hogwild_world(checked, parts, agent, teacher)
    names = ("grad_clip", "learn_rate", "b1", "b2", "eps", "L2")
    return Work(world, {name: float(getattr(optimizer, name)) for name in names})
