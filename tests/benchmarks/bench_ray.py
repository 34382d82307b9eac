"""Measure what workers on Ray cost and gain. Each figure comes with its ceiling from the same run.

    python tests/benchmarks/bench_ray.py [speed] [exchange] [nodes] [restart] [paper] [scores]

    speed     examples per second with 2 workers, divided by those of one process (num_workers = 0),
              and the same ratio for pure computing, which is the ceiling; bursts take turns, as in
              bench_hogwild. Then the same ratio by CPU time, of the worker that took more of it:
              the gain on two idle cores, whatever else the machine does, except that waiting is
              not included. The last columns: two workers of hogwild, divided by one process
    exchange  milliseconds from gradients that are ready until all workers see the new parameters,
              with 2 workers on one machine; optimizers are Thinc's Adam, Adam with averages of the
              weights (the default of Thinc's), LazyAdam, and LazyAdam with ops = "fast"; the
              ceiling of each is its step alone, on half of the parameters
    nodes     the same between two raylets; its ceiling is Ray's messages alone, three rounds with
              the same number of bytes
    restart   seconds from a kill -9 until the other workers continue
    paper     examples per second on 4, 16, 64 nodes, computed from measurements of the parts
    scores    the notebook's experiment, five seeds: takes minutes

All parts except scores run if none is named. The machine should be idle. With --quick, only
exchange runs, and its workers are threads, because Ray takes most of the ten seconds to start and
to stop.
"""

import io
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Tuple

import numpy
from bench_hogwild import N_ROUNDS, SECONDS, Spin, Work, data, one_blas_thread, rounds
from measuring import DATA, QUICK, ROOT, has_data, sized
from thinc.api import Adam, Model

from thincdialog.api import load_config, train
from thincdialog.models.parameters import FlatParameters
from thincdialog.ops.choice import get_dialog_ops
from thincdialog.optimizers.adam import thincs_step
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.row_sparse import Segment
from thincdialog.optimizers.state import KEY
from thincdialog.runners import Hogwild
from thincdialog.runners.cluster.exchange import SUMS, VALUES, WEIGHTS, Barrier
from thincdialog.runners.cluster.runner import build_ray
from thincdialog.runners.cluster.shard import Shard, pieces_of
from thincdialog.runners.cluster.slots import Slots
from thincdialog.runners.cluster.sync_worker import SyncWorker, sync_layout
from thincdialog.runners.shared_arrays import open_arrays, private_arrays, shared_arrays

N_STEPS = int(os.environ.get("BENCH_STEPS", sized(30, 6)))
# Array sizes of a model with 1 million parameters, and of one with 20 million, most in one table.
SIZES = {"1 M": [1000 * 998]}
SIZES.update(sized({"20 M": [15_400_000, *[4_579_052 // 12] * 12]}, {}))
OPTIMIZERS: Dict[str, Tuple[Any, str]] = {
    "Adam": (partial(Adam, use_averages=False), "numpy"),
    "Adam, averages": (Adam, "numpy"),
    "Adam, fast": (partial(Adam, use_averages=False), "fast"),
    "LazyAdam": (LazyAdam, "numpy"),
    "LazyAdam, fast": (LazyAdam, "fast"),
}


def start_ray() -> Any:
    """Start a cluster for all parts."""
    import ray

    if not ray.is_initialized():
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
        os.environ["PYTHONPATH"] = f"{ROOT}:{Path(__file__).parent}"
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
        )
    return ray


# --- speed ------------------------------------------------------------------------------


def trainings(folder: Path) -> Any:
    """Yield each training's name, config, overrides and code."""
    if has_data("mnist"):
        over: Dict[str, Any] = {
            "paths.mnist": str(DATA / "mnist"),
            "agent.model.hidden_width": 128,
            "agent.model.dropout": 0.2,
            "training.optimizer.@optimizers": "Adam.v1",
            "training.optimizer.learn_rate": 0.001,
        }
        yield "notebook", ROOT / "configs/mnist_ray.cfg", over, ROOT / "configs/mnist_ray.py", 2
    talks = data(folder, "self_dialogue/train.jsonl.gz", 4000)
    over = {"paths.train": talks, "paths.dev": talks}
    yield "ranker", ROOT / "configs/ranker_ray.cfg", over, None, 2
    bilstm = load_config(ROOT / "configs" / "ranker_ray.cfg", {}).config
    encoder = {"@models": "thincdialog.BiLSTMEncoder.v1", "width": 128, "dropout": 0.0}
    bilstm["agent"]["model"]["encoder"] = encoder
    yield "BiLSTM", bilstm, over, None, 2


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Busy:
    """The CPU time that training has taken since this object was made."""

    def __init__(self, work: Work):
        workers = work.runner.workers
        self.work, self.pids = work, workers.pids if workers else [os.getpid()]
        self.n, self.seconds = work.n_examples, [cpu_seconds(pid) for pid in self.pids]

    def rate(self) -> float:
        """Return the examples per CPU second of the worker that took most of it."""
        taken = [cpu_seconds(pid) - began for pid, began in zip(self.pids, self.seconds)]
        return (self.work.n_examples - self.n) / max(taken)


def by_processors(one: Work, two: Work) -> float:
    """Return how many times as fast two workers are as one process, if each has a core."""
    rates = []
    for work in (one, two):
        busy = Busy(work)
        while work.n_examples - busy.n < 20 * 512:
            work.burst(SECONDS)
        rates.append(busy.rate())
    return rates[1] / rates[0]


def speed() -> None:
    start_ray()
    columns = f"{'one, ex/s':>12}{'2 workers':>11}{'ceiling':>9}{'part of it':>12}{'by CPU':>9}"
    columns += f"{'threads':>9}{'processes':>11}"
    print(f"{'model':12}{columns}")
    with tempfile.TemporaryDirectory() as name:
        for what, config, over, code, k in trainings(Path(name)):
            works: Dict[Any, Any] = {}
            for n in (0, 2):
                runner = build_ray(num_workers=n, microbatches=k)
                work = works["work", n] = Work(config, over, runner, code=code)
                while not work.n_epochs:  # Later epochs find texts as tokens.
                    work.burst(SECONDS)
            for executor in ("thread", "process"):
                works[executor, 2] = Work(config, over, Hogwild(2, executor), code=code)
            works["spin", 0], works["spin", 2] = Spin(1), Spin(2)
            found = rounds(works)
            gain, spin, threads, processes = (
                statistics.median(two / one for two, one in zip(found[kind, 2], found[alone, 0]))
                for kind, alone in (
                    ("work", "work"), ("spin", "spin"), ("thread", "work"), ("process", "work"),
                )
            )  # fmt: skip
            one = statistics.median(found["work", 0])
            cpu = by_processors(works["work", 0], works["work", 2])
            shown = f"{one:12,.0f}{gain:11.2f}{spin:9.2f}{gain / spin:12.2f}{cpu:9.2f}"
            shown += f"{threads:9.2f}{processes:11.2f}"
            print(f"{what:12}{shown}", flush=True)
            for n in (0, 2):
                works["work", n].runner.end()
            for executor in ("thread", "process"):
                works[executor, 2].runner.end()


# --- exchange ---------------------------------------------------------------------------


def parameters_of(sizes: List[int], ops: str = "numpy") -> FlatParameters:
    """Return the parameters of a model that has only arrays of these sizes."""
    params = {f"W{n}": numpy.ones(size, dtype="f") for n, size in enumerate(sizes)}
    model: Model = Model("all", lambda *given: given, params=params, ops=get_dialog_ops(-1, ops))
    return FlatParameters(model)


class Exchanging(SyncWorker):
    """A worker that has its gradient ready, step after step."""

    def __init__(self, worker: int, sizes: List[int], optimizer: str):
        self.number, self.slots = worker, Slots(2, 2)
        self.make, ops = OPTIMIZERS[optimizer]
        self.parameters = parameters_of(sizes, ops)
        self.segments = self.parameters.segments
        self.experiment: Any = SimpleNamespace(working=nullcontext)
        self.vectors: Any = SimpleNamespace(weights_changed=lambda: None)
        self.learner: Any = SimpleNamespace(weights=self.parameters.values)
        self.walk: Any = SimpleNamespace(done=lambda: False)
        self.pieces = [pieces_of(self.segments, each, 2) for each in range(2)]

    def begin(self, memory: Any) -> None:
        """memory (Optional[SharedMemory]): Shared memory; None for Ray's object store."""
        layout = sync_layout(self.segments, self.slots)
        self.arrays = private_arrays(layout) if memory is None else open_arrays(memory)
        self.optimizer = self.make(0.001)
        self.shard = Shard(
            self.pieces[self.number], self.optimizer, self.parameters.ops, self.arrays
        )
        self.barrier = Barrier(self.arrays, self.number)

    def _learn(self, step: int) -> None:
        self.arrays[f"vector {self.number}"].fill(0.01)
        self.arrays[WEIGHTS][self.number, 0] = 64
        self._filled, self._n_slots, self._reports = [self.number], 2, []

    def exchange(self, n_steps: int) -> List[float]:
        """RETURNS (List[float]): Milliseconds of each step through shared memory."""
        found = []
        for step in range(n_steps):
            self._learn(step)
            self.barrier.wait()  # All are ready.
            began = time.perf_counter()
            self.barrier.wait()
            self._add_up()
            self.barrier.wait()
            self._step(self.arrays[SUMS])
            self.barrier.wait()
            found.append(1e3 * (time.perf_counter() - began))
        return found

    def send(self, *received: Any) -> Any:
        """Return half a gradient, or half the weights."""
        return self.arrays[VALUES][: len(self.arrays[VALUES]) // 2]

    def alone(self, n_steps: int) -> List[float]:
        """Measure the milliseconds of the optimizer's step alone, on half of the parameters."""
        values = self.parameters.values
        n, found, optimizer = len(values) // 2, [], self.make(0.001, grad_clip=0.0)
        weights, gradient = numpy.ones(n, dtype="f"), numpy.ones(n, dtype="f")
        whole, ops = [Segment(0, n)], self.parameters.ops
        for _ in range(n_steps):
            gradient.fill(0.01)
            began = time.perf_counter()
            if isinstance(optimizer, LazyAdam):
                optimizer.update_parts(KEY, weights, gradient, whole, ops=ops)
            else:
                thincs_step(optimizer, KEY, weights, gradient, ops)
            found.append(1e3 * (time.perf_counter() - began))
        return found


class Threaded:
    """Replaces an actor by threads of this process, as far as an exchange needs one."""

    def __init__(self, of: Any):
        self.of, self.pool = of, ThreadPoolExecutor(4)

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=partial(self.pool.submit, getattr(self.of, name)))


# Replaces Ray if the actors are threads.
THREADS = SimpleNamespace(
    get=lambda futures: [future.result() for future in futures],
    kill=lambda actor: actor.pool.shutdown(),
)


def pair(ray: Any, sizes: List[int], optimizer: str, memory: Any, nodes: List[Any]) -> List[Any]:
    if ray is THREADS:
        actors: List[Any] = [Threaded(Exchanging(n, sizes, optimizer)) for n in range(2)]
    else:
        kind = ray.remote(Exchanging)
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        actors = [
            kind.options(
                num_cpus=1,
                max_concurrency=4,
                scheduling_strategy=strategy(nodes[n], soft=False) if nodes else "DEFAULT",
            ).remote(n, sizes, optimizer)
            for n in range(2)
        ]
    ray.get([actor.begin.remote(memory) for actor in actors])
    return actors


def sent(ray: Any, actors: List[Any], is_alone: bool = False) -> Tuple[float, float]:
    """Return the milliseconds of a step of workers that send each other their results, as in
    ``SyncRunner``, or of its messages alone."""
    found = []
    for step in range(N_STEPS):
        began = time.perf_counter()
        if is_alone:
            for _ in range(3):
                refs = [actor.send.remote() for actor in actors]
                refs = [actor.send.remote(*refs[::-1]) for actor in actors]
        else:
            cuts = [actor.learn.options(num_returns=2).remote(step) for actor in actors]
            sums = [
                actor.add_up.remote(*(cut[n] for cut in cuts)) for n, actor in enumerate(actors)
            ]
            changed = [actor.step.remote(*sums) for actor in actors]
            refs = [actor.take.remote(*changed) for actor in actors]
        ray.wait(refs, num_returns=2)
        found.append(1e3 * (time.perf_counter() - began))
    steps = found[N_STEPS // 3 :]
    return statistics.median(steps), min(steps)


def timed(ray: Any, actors: List[Any], call: str) -> Tuple[float, float]:
    """Return the median and the best of the steps, because others use the machine. The first steps,
    in which memory is touched for the first time, are left out."""
    found = ray.get([getattr(actor, call).remote(N_STEPS) for actor in actors])
    steps = [max(both) for both in list(zip(*found))[N_STEPS // 3 :]]
    return statistics.median(steps), min(steps)


def exchange() -> Dict[str, float]:
    ray, found = THREADS if QUICK else start_ray(), {}
    print("milliseconds, median and best of steps")
    print(f"{'parameters':22}{'shm':>16}{'step of half':>16}{'store':>16}")
    for name, sizes in SIZES.items():
        parameters = parameters_of(sizes)
        layout = sync_layout(parameters.segments, Slots(2, 2))
        for optimizer in sized(list(OPTIMIZERS), ["LazyAdam, fast"]):
            with shared_arrays(layout) as (memory, _):
                actors = pair(ray, sizes, optimizer, memory, [])
            alone, took = timed(ray, actors, "alone"), timed(ray, actors, "exchange")
            through = (0.0, 0.0)
            if ray is not THREADS:
                ray.get([actor.begin.remote(None) for actor in actors])
                through = sent(ray, actors)
            found.setdefault(name, through[0])
            shown = "".join(f"{a:8.2f}{b:8.2f}" for a, b in (took, alone, through))
            print(f"{name + ' ' + optimizer:22}{shown}", flush=True)
            for actor in actors:
                ray.kill(actor)
    return found


def nodes() -> Dict[str, Tuple[float, float]]:
    """RETURNS (Dict[str, Tuple[float, float]]): Milliseconds of an exchange, and of Adam alone on
    half of the parameters."""
    import ray
    from ray.cluster_utils import Cluster

    if ray.is_initialized():
        ray.shutdown()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ["PYTHONPATH"] = f"{ROOT}:{Path(__file__).parent}"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    found = {}
    ids = [node["NodeID"] for node in ray.nodes()]
    print("milliseconds, median and best of steps")
    print(f"{'parameters':12}{'two raylets':>18}{'messages alone':>18}{'Adam of half':>18}")
    for name, sizes in SIZES.items():
        actors = pair(ray, sizes, "Adam", None, ids)
        took = [sent(ray, actors), sent(ray, actors, is_alone=True), timed(ray, actors, "alone")]
        found[name] = took[0][0], took[2][0]
        print(f"{name:12}" + "".join(f"{a:9.1f}{b:9.1f}" for a, b in took), flush=True)
        for actor in actors:
            ray.kill(actor)
    ray.shutdown()
    cluster.shutdown()
    return found


# --- restart ----------------------------------------------------------------------------


def restart() -> None:
    from thincdialog.runners.cluster.sync_runner import SyncRunner

    start_ray()
    take, steps = SyncRunner.take, [20, 60, 100]

    def killing(self: Any, step: int, room: float) -> Any:
        if steps and step > steps[0] and len(self.workers.actors) == 2:
            steps.pop(0)
            threading.Timer(0.1, os.kill, (self.workers.pids[-1], 9)).start()
        return take(self, step, room)

    SyncRunner.take = killing  # type: ignore[method-assign]
    told, over = io.StringIO(), {"training.max_steps": 600, "training.n_samples": 0}
    over.update({"runner.snapshot_every": 20, "runner.num_workers": 2})
    over["runner.@runners"] = "thincdialog.Ray.v1"  # type: ignore[assignment]
    train(ROOT / "configs/quickstart.cfg", overrides=over, stdout=io.StringIO(), stderr=told)
    SyncRunner.take = take  # type: ignore[method-assign]
    print("restart after kill -9, seconds:", re.findall(r"\(([\d.]+) seconds", told.getvalue()))


# --- on paper ---------------------------------------------------------------------------


def paper() -> None:
    """Estimate a step on N nodes. Each node computes its microbatch. Gradients are sent to the
    nodes that own their parameters and weights come back: 2 (N - 1) / N of the parameters in each
    direction through a node's link. Each node computes one N-th of Adam's step. There are three
    rounds of messages."""
    between = nodes()
    # Two points of a line give the cost of a message and that of a byte.
    sizes = {"1 M": 998_000, "20 M": 19_979_000}
    seconds = {name: (whole - adam) / 1e3 for name, (whole, adam) in between.items()}
    adam = between["20 M"][1] / 1e3 / (sizes["20 M"] / 2)
    sent = {name: 2 * size * 4 / 2 for name, size in sizes.items()}
    rate = (sent["20 M"] - sent["1 M"]) / max(1e-9, seconds["20 M"] - seconds["1 M"])
    latency = max(0.001, seconds["1 M"] - sent["1 M"] / rate)
    a = numpy.ones((1024, 1024), dtype="f")
    with one_blas_thread():
        began = time.perf_counter()
        for _ in range(5):
            a @ a
        flops = 5 * 2 * 1024**3 / (time.perf_counter() - began)
    print(f"measured: {rate / 1e6:,.0f} MB/s of a link, {latency * 1e3:.1f} ms for three rounds,")
    print(f"{flops / 1e9:.0f} GFLOP/s of a core, {adam * 1e9:.1f} ns of Adam for a parameter;")
    print("microbatches of 128 examples, all dense; the time that reading data takes is left out")
    print(f"{'model':8}{'nodes':>6}{'ex/s':>10}{'of linear':>11}  bottleneck")
    for n_parameters in (20e6, 100e6):
        compute = 6 * n_parameters * 128 / flops
        alone = 128 / (compute + adam * n_parameters)
        for n in (1, 4, 16, 64):
            share = (n - 1) / n
            parts = {
                "computing": compute,
                "the link": 2 * share * n_parameters * 4 / rate,
                "Adam": adam * n_parameters / n,
                "messages": latency * (n - 1) if n > 1 else 0.0,
            }
            total = n * 128 / sum(parts.values())
            worst = max(parts, key=lambda name: parts[name])
            name = f"{n_parameters / 1e6:.0f} M"
            print(f"{name:8}{n:6}{total:10,.0f}{total / alone / n:11.0%}  {worst}")


def scores() -> None:
    if not has_data("mnist"):
        return
    start_ray()
    notebook = {
        "agent.model.hidden_width": 128,
        "agent.model.dropout": 0.2,
        "training.optimizer.@optimizers": "Adam.v1",
        "training.optimizer.learn_rate": 0.001,
    }
    late = {"runner.mode": "async", "runner.microbatches": 1, "training.max_steps": 400}
    for name, over in (
        ("notebook, sync", notebook),
        ("notebook, async", {**notebook, **late}),
        ("mnist_ray.cfg, sync", {}),
        ("mnist_ray.cfg, async", {**late, "training.optimizer.learn_rate.warmup_steps": 40}),
    ):
        found = []
        for seed in range(5):
            given = {"paths.mnist": str(DATA / "mnist"), "system.seed": seed, **over}
            given["training.eval_every_steps"] = 400
            silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
            config, code = ROOT / "configs/mnist_ray.cfg", ROOT / "configs/mnist_ray.py"
            result = train(config, overrides=given, code=code, **silent)
            found.append(result.scores["dev"]["accuracy"])
        print(f"{name:24}{statistics.median(found):8.4f}  {[round(each, 4) for each in found]}")


PARTS = {
    "speed": speed, "exchange": exchange, "restart": restart, "paper": paper,
    "nodes": nodes, "scores": scores,
}  # fmt: skip

if __name__ == "__main__":
    if find_spec("ray") is None:
        print("left out: Ray is not installed (pip install '.[ray]')")
        sys.exit()
    print(f"load {os.getloadavg()[0]:.1f}; {N_ROUNDS} rounds, {N_STEPS} steps")
    for asked in sys.argv[1:] or sized(["speed", "exchange", "restart", "paper"], ["exchange"]):
        print(f"-- {asked}")
        PARTS[asked]()
