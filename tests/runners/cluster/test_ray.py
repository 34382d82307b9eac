"""Whole runs on a real Ray cluster, which all tests share."""

import io
import json
import math
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from thinc.compat import has_cupy

from tests.processes import limited, no_longer_than, slow
from tests.test_configs import CONFIGS, code_of, encoder_paths, on_little_data
from tests.training.examples import RANKER, weights
from thincdialog.api import dry_run, evaluate_in_detail, load_config, train
from thincdialog.config import load_code
from thincdialog.errors import ConfigError, DataError, DialogError, WorkerError
from thincdialog.evaluation.predictions import Recorder
from thincdialog.files.held import AGENT, held, temporary_folder
from thincdialog.formats.context import tolerating
from thincdialog.runners.cluster import async_runner, ray_runner, workers
from thincdialog.runners.cluster.actor import WorkerActor
from thincdialog.runners.cluster.async_runner import AsyncRunner
from thincdialog.runners.cluster.ray_cluster import check_cluster_answers
from thincdialog.runners.cluster.ray_runner import RayRunner
from thincdialog.runners.cluster.sync_runner import SyncRunner
from thincdialog.runners.cluster.workers import Workers
from thincdialog.runners.data_prints import data_prints
from thincdialog.runners.patience import Patience
from thincdialog.runners.recipe import make_experiment, recipe_of
from thincdialog.runs.run_log import read_log
from thincdialog.training.experiment import Experiment
from thincdialog.training.interruption import Interrupted
from thincdialog.worlds import BatchWorld

# All of these tests run in one process of pytest, as they share a cluster, which uses all cores.
pytestmark = pytest.mark.xdist_group("ray")
RAY = """
[runner]
@runners = "thincdialog.Ray.v1"
num_workers = 2
microbatches = 2
"""
CONFIG = RANKER.replace("n_samples = 1", "n_samples = 0\neval_every_steps = 4") + RAY
TIMES = ("seconds", "examples_per_second", "tokens_per_second")


def run(folder, overrides=(), config=CONFIG, **options):
    """Train. RETURNS: Weights, rows of the log without times, and stderr without the folder."""
    told = io.StringIO()
    given = {f"runner.{name}": value for name, value in dict(overrides).items() if "." not in name}
    given.update({name: value for name, value in dict(overrides).items() if "." in name})
    train(config, output=folder, overrides=given, stdout=io.StringIO(), stderr=told, **options)
    rows = [
        {name: value for name, value in row.items() if name not in TIMES}
        for row in read_log(folder / "log.jsonl")
    ]
    return weights(folder), rows, told.getvalue().replace(f"Saving to {folder}\n", "")


@pytest.fixture
def alone(tmp_path):
    return run(tmp_path / "alone", {"num_workers": 0})


@pytest.mark.parametrize("plane", ["shm", "store"])
def test_ray_workers_end_with_the_same_weights_scores_and_log(plane, cluster, tmp_path, alone):
    found = run(tmp_path / "two", {"plane": plane})
    assert found[0] == alone[0]
    assert found[1] == alone[1] and len(alone[1]) > 3


# The first two learn example by example, ranker equals ranker_ray, and the tests with torch train
# the last.
OTHERS = ("starspace", "fasttext", "ranker", "torch_intent")
BY_GRADIENT = [path for path in CONFIGS if path.stem not in OTHERS]


@pytest.mark.slow
@pytest.mark.parametrize("path", BY_GRADIENT, ids=lambda path: path.stem)
def test_ray_trains_all_shipped_configs(path, cluster, tmp_path):
    code = code_of(path)
    load_code(code)
    given = encoder_paths(path, tmp_path)
    overrides, _ = on_little_data(load_config(path, given), tmp_path)
    overrides.update(given)
    overrides.update({"runner.@runners": "thincdialog.Ray.v1", "runner.microbatches": 2})
    runs = []
    for n in (0, 2):
        runs.append(run(tmp_path / str(n), {**overrides, "num_workers": n}, path, code=code))
    assert runs[0][:2] == runs[1][:2]


def test_ray_a_run_resumes_with_another_number_of_workers(cluster, tmp_path, alone):
    steps = {"training.max_steps": 4, "training.checkpoint_every_steps": 2}
    run(tmp_path / "two", {**steps, "num_workers": 1})
    whole = {**steps, "training.max_steps": 0}
    assert run(tmp_path / "two", whole, resume=True)[0] == alone[0]


def test_ray_a_run_without_microbatches_resumes_as_the_error_says(cluster, tmp_path, alone):
    config = CONFIG.replace("microbatches = 2\n", "")
    steps = {"training.max_steps": 4, "training.checkpoint_every_steps": 2}
    run(tmp_path / "two", steps, config)
    whole = {**steps, "training.max_steps": 0, "num_workers": 0}
    with pytest.raises(
        ConfigError, match="a step has 1 microbatches, not 2 as saved.*microbatches = 2"
    ):
        run(tmp_path / "two", whole, config, resume=True)
    assert run(tmp_path / "two", {**whole, "microbatches": 2}, config, resume=True)[0] == alone[0]


UNSAVED = """
from functools import partial
from thincdialog.api import Batcher, BatchWorld, World, registry


class Unsaved(BatchWorld):
    _state = World._state


@registry.worlds("unsaved_batches.v1")
def build_unsaved(batcher: Batcher):
    return partial(Unsaved, batcher=batcher)
"""


def test_ray_a_world_without_a_state_is_saved_within_an_epoch(cluster, tmp_path):
    code = tmp_path / "unsaved.py"
    code.write_text(UNSAVED)
    config = CONFIG.replace("thincdialog.BatchWorld.v1", "unsaved_batches.v1")
    whole = run(tmp_path / "alone", {"num_workers": 0}, config, code=code)
    steps = {"training.max_steps": 3, "training.checkpoint_every_steps": 3}
    run(tmp_path / "two", steps, config, code=code)
    assert (tmp_path / "two" / "checkpoint-3").is_dir()
    rest = {**steps, "training.max_steps": 0, "num_workers": 0}
    assert run(tmp_path / "two", rest, config, resume=True, code=code)[0] == whole[0]


def last_worker(runner):
    return runner.workers.pids[-1]


def server(runner):
    return runner.server_pid


def wait_for_starts(workers):
    """Wait until all workers that are starting have started."""
    refs = list(workers._starting)
    if refs:
        workers.ray.wait(refs, num_returns=len(refs), timeout=60.0)


def killing(monkeypatch, methods, victims):
    """Kill processes just before certain calls, when all workers are there.

    methods: Pairs of a class, a runner or Workers, and the name of a method that makes calls.
    victims: Pairs of the name of a call, or of a method, and a function that returns the process to
        kill.
    """
    left, begin, begun = list(victims), RayRunner.begin, []

    def beginning(runner, *given):
        begin(runner, *given)
        begun.append(runner)

    def kill_before(kind, method):
        ask = getattr(kind, method)

        def killing_ask(asked, *given):
            runner = getattr(asked, "runner", asked)
            if runner not in begun or runner.workers is None:
                return ask(asked, *given)
            called = {method, given[0] if given and isinstance(given[0], str) else ""}
            waits = [each for each in left if each[0] in called]
            # The replacement of the last worker that died starts and works in bounded time.
            wait_for_starts(runner.workers)
            if waits and len(runner.workers.actors) == runner.num_workers:
                left.remove(waits[0])
                os.kill(waits[0][1](runner), 9)
            return ask(asked, *given)

        monkeypatch.setattr(kind, method, killing_ask)

    monkeypatch.setattr(RayRunner, "begin", beginning)
    for each in methods:
        kill_before(*each)
    return left


SYNC_CALLS = [(Workers, "each"), (SyncRunner, "_call")]
ASYNC_CALLS = [(AsyncRunner, "_call_server")]


@pytest.mark.parametrize("plane", ["shm", slow("store")])
def test_ray_a_killed_worker_changes_no_result(plane, cluster, tmp_path, monkeypatch):
    long = {"training.max_epochs": 4.0, "snapshot_every": 7, "max_restarts": 9}
    alone = run(tmp_path / "alone", {**long, "num_workers": 0})
    calls = ["start_epoch", "run", "evaluate", "place", *["owned"] * (plane == "store")]
    left = killing(monkeypatch, SYNC_CALLS, [(name, last_worker) for name in calls])
    take = SyncRunner.take
    monkeypatch.setattr(SyncRunner, "take", lambda *given: take(*given[:2], min(given[2], 2)))
    found = run(tmp_path / "two", {**long, "plane": plane})
    assert not left
    assert found[2].count("worker 1 died: resumed with 1 worker from step") == len(calls)
    assert found[0] == alone[0]
    assert found[1] == alone[1]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.03])
def test_ray_a_worker_killed_within_a_step_changes_no_result(
    seconds, cluster, tmp_path, monkeypatch, alone
):
    """The calls of the step that need its results fail, too, although their workers live."""
    wait, killed = Workers.wait, []

    def killing_wait(workers, refs):
        is_step = sys._getframe(1).f_code.co_name == "_exchange"
        if is_step and not killed and workers.runner.step >= 4:
            killed.append(workers.pids[0])
            time.sleep(seconds)
            os.kill(killed[0], 9)
        return wait(workers, refs)

    monkeypatch.setattr(Workers, "wait", killing_wait)
    found = run(tmp_path / "two", {"plane": "store", "snapshot_every": 3})
    assert killed and "worker 0 died: resumed with 1 worker from" in found[2]
    assert found[:2] == alone[:2]


def test_ray_a_signal_within_a_recovery_saves_no_partial_state(
    cluster, tmp_path, monkeypatch, alone
):
    ask, asked, signals = Workers.each, [], [signal.SIGTERM]

    def each(team, name, *given):
        asked.append(name)
        if asked.count("evaluate") == 2 and signals:  # While the run may be interrupted anywhere.
            if name == "evaluate":
                os.kill(team.pids[-1], 9)
            if name == "go_to":  # Workers are back at the snapshot.
                signal.raise_signal(signals.pop())
        return ask(team, name, *given)

    monkeypatch.setattr(Workers, "each", each)
    given = {"training.checkpoint_every_steps": 3, "snapshot_every": 3}
    with pytest.raises(Interrupted) as caught:
        run(tmp_path / "two", given)
    assert not signals and caught.value.saved
    assert run(tmp_path / "two", given, resume=True)[0] == alone[0]


@pytest.mark.parametrize("is_last", [False, True])
def test_ray_a_signal_within_an_evaluation_loses_no_step(
    is_last, cluster, tmp_path, monkeypatch, alone
):
    """While Ray waits, it raises its own KeyboardInterrupt, which does not name the signal."""
    ask, asked, signals = Workers.each, [], [signal.SIGTERM]

    def each(team, name, *given):
        asked.append(name)
        # Only the final evaluation is on the test data.
        is_due = given[:1] == ("test",) if is_last else asked.count("evaluate") == 2
        if name == "evaluate" and is_due and signals:
            threading.Timer(0.3, os.kill, (os.getpid(), signals.pop())).start()
            team.wait([cluster.remote(num_cpus=0)(lambda: time.sleep(5)).remote()])
        return ask(team, name, *given)

    monkeypatch.setattr(Workers, "each", each)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(tmp_path / "two")
    assert caught.value.exit_code == 75 and not signals
    steps = [row["step"] for row in read_log(tmp_path / "alone" / "log.jsonl")]
    assert caught.value.saved.endswith(f"checkpoint-{steps[-1] if is_last else 4}")
    assert run(tmp_path / "two", resume=True)[0] == alone[0]


def test_ray_too_many_deaths_end_the_run(cluster, tmp_path, monkeypatch):
    killing(monkeypatch, SYNC_CALLS, [("run", last_worker)])
    with pytest.raises(WorkerError, match="max_restarts = 0"):
        run(tmp_path / "two", {"max_restarts": 0})


def staleness(rows):
    counts = {}
    for row in rows:
        for age, n in row.get("staleness", {}).items():
            counts[int(age)] = counts.get(int(age), 0) + n
    return counts


@pytest.mark.parametrize("plane, dies", [("store", False), ("shm", True), slow("store", True)])
def test_ray_asynchronous_every_example_counts_once(plane, dies, cluster, tmp_path, monkeypatch):
    given = {"mode": "async", "microbatches": 1, "plane": plane, "training.max_epochs": 6.0}
    given.update({"snapshot_every": 5, "training.eval_every_steps": 0, "max_restarts": 9})
    left = []
    if dies:
        calls = ["end_at", "snapshot", "start_epoch", "end_at"]
        victims = [(name, server) for name in calls] + [("snapshot", last_worker)]
        left = killing(monkeypatch, ASYNC_CALLS, victims)
    _, rows, told = run(tmp_path / "two", given)
    assert not left
    assert told.count("the server died") == 4 * dies and told.count("worker 1 died") == dies
    last = rows[-1]
    # Exactly six epochs, although some batches were repeated.
    assert last["epoch"] == 6.0
    alone = run(tmp_path / "alone", {**given, "num_workers": 0})[1][-1]
    assert (last["step"], last["examples"]) == (alone["step"], alone["examples"])
    ages = staleness(rows)
    assert sum(ages.values()) == last["step"]
    assert max(ages) <= 3


def server_is_over(runner):
    return runner._call_server("snapshot")[0]["is_over"]


def test_ray_asynchronous_a_server_that_dies_as_an_epoch_ends_changes_no_count(
    cluster, tmp_path, monkeypatch
):
    """A new server starts the epoch again, and does not know yet where the epoch ends."""
    save, dead = AsyncRunner._save, []

    def killing_save(runner):
        if runner.origin and not runner.busy and not dead and runner.server_is_over():
            dead.append(server(runner))
            os.kill(dead[0], 9)
        return save(runner)

    monkeypatch.setattr(AsyncRunner, "server_is_over", server_is_over, raising=False)
    monkeypatch.setattr(async_runner, "PAUSE_FACTOR", 1e9)  # No step is reported before.
    monkeypatch.setattr(AsyncRunner, "_save", killing_save)
    given = {"mode": "async", "microbatches": 1, "training.max_epochs": 2.0}
    given.update({"snapshot_every": 500, "training.eval_every_steps": 0})
    _, rows, told = run(tmp_path / "two", given)
    assert "the server died; a new one resumed from step 0 " in told
    alone = run(tmp_path / "alone", {**given, "num_workers": 0})[1]
    assert [row["step"] for row in rows] == [row["step"] for row in alone]
    assert rows[-1]["examples"] == alone[-1]["examples"]


def test_ray_more_workers_than_microbatches_are_reported(cluster, tmp_path, alone):
    found = run(tmp_path / "four", {"num_workers": 4})
    assert found[:2] == alone[:2]
    assert "4 workers, but microbatches = 2, so some have nothing to do" in found[2]
    assert "workers, but" not in alone[2]


def test_ray_asynchronous_a_dead_server_changes_no_result_of_one_worker(
    cluster, tmp_path, monkeypatch
):
    listen, dead = AsyncRunner._collect_ended, []

    def killing_listen(runner):
        listen(runner)
        if runner.saved["version"] >= 3 and not dead:
            dead.append(server(runner))
            os.kill(dead[0], 9)

    monkeypatch.setattr(AsyncRunner, "_collect_ended", killing_listen)
    given = {"mode": "async", "microbatches": 1, "snapshot_every": 2}
    alone = run(tmp_path / "alone", {**given, "num_workers": 0})
    found, rows, told = run(tmp_path / "one", {**given, "num_workers": 1})
    assert "the server died" in told
    assert found == alone[0] and rows[-1]["examples"] == alone[1][-1]["examples"]


def test_ray_asynchronous_one_worker_gives_the_same_as_one_process(cluster, tmp_path):
    given = {"mode": "async", "microbatches": 1, "training.optimizer.grad_clip": 0.0}
    none = run(tmp_path / "none", {**given, "num_workers": 0})
    one = run(tmp_path / "one", {**given, "num_workers": 1})
    plain = RANKER.replace("n_samples = 1", "n_samples = 0\neval_every_steps = 4")
    told = io.StringIO()
    train(
        plain, output=tmp_path / "plain", overrides={"training.optimizer.grad_clip": 0.0},
        stdout=told, stderr=told,
    )  # fmt: skip
    assert one[0] == none[0] == weights(tmp_path / "plain")


@pytest.mark.slow
def test_ray_asynchronous_a_replacement_worker_works_at_once(cluster, tmp_path, monkeypatch):
    """It was not there when the other workers opened their memory. All workers get new memory."""
    listen, tell, evaluate = AsyncRunner._collect_ended, AsyncRunner._reports, Workers.evaluate
    seen = []

    def seeing_evaluate(workers, *given):
        seen.append("evaluated")
        return evaluate(workers, *given)

    def killing_listen(runner):
        if "killed" not in seen:
            os.kill(runner.workers.pids[1], 9)
            seen.append("killed")
        wait_for_starts(runner.workers)
        return listen(runner)

    def seeing_reports(runner):
        seen.extend(worker for worker, _ in runner._made)
        reports = tell(runner)
        seen.append(runner.status())
        return reports

    monkeypatch.setattr(AsyncRunner, "_collect_ended", killing_listen)
    monkeypatch.setattr(AsyncRunner, "_reports", seeing_reports)
    monkeypatch.setattr(Workers, "evaluate", seeing_evaluate)
    given = {"mode": "async", "microbatches": 1, "training.max_epochs": 30.0}
    given.update({"training.eval_every_epochs": 0, "training.eval_every_steps": 0})
    _, rows, told = run(tmp_path / "two", given)
    assert told.count("worker 1 died") == 1
    began = seen.index("killed")
    at_work = seen[began : seen.index("evaluated", began)]
    assert {0, 1} <= set(at_work)
    lines = [each for each in at_work if isinstance(each, str)]
    pattern = r"workers [\d,]+\+[\d,]+/s, staleness \d, 1 restarted"
    assert any(re.fullmatch(pattern, line) for line in lines), lines
    assert rows[-1]["epoch"] == 30.0


def interrupting(monkeypatch, act, least=1):
    """Send the run a signal while workers are working, after some steps. ``act`` is called with the
    runner before."""
    save, signals = AsyncRunner._save, [signal.SIGTERM]

    def signalling_save(runner):
        save(runner)
        if runner._made and signals and runner.saved["version"] >= least:
            act(runner)
            signal.raise_signal(signals.pop())

    monkeypatch.setattr(AsyncRunner, "_save", signalling_save)


@pytest.mark.parametrize("n_then", [slow(0), 2])
def test_ray_asynchronous_a_signal_ends_the_run_and_it_can_resume(
    cluster, tmp_path, monkeypatch, n_then
):
    given = {"mode": "async", "microbatches": 1, "training.checkpoint_every_steps": 1000}
    rate = {"initial_rate": 0.01, "warmup_steps": 10, "total_steps": 1000}
    given["training.optimizer.learn_rate"] = {"@schedules": "warmup_linear.v1", **rate}
    interrupting(monkeypatch, lambda runner: None)
    with pytest.raises(Interrupted) as caught:
        run(tmp_path / "two", given)
    assert caught.value.saved
    monkeypatch.undo()
    rows = run(tmp_path / "two", {**given, "num_workers": n_then}, resume=True)[1]
    alone = run(tmp_path / "alone", {**given, "num_workers": 0})[1]
    names = ("step", "examples", "epoch", "learn_rate")
    counts = [(rows[-1][name], alone[-1][name]) for name in names]
    assert all(found == expected for found, expected in counts), counts


def test_ray_asynchronous_a_worker_that_hangs_after_a_signal_is_given_up(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(workers, "Patience", partial(Patience, end_seconds=0.5))
    stopped = []

    def stop(runner):
        stopped.extend(runner.workers.pids)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)

    interrupting(monkeypatch, stop)
    with no_longer_than(90), pytest.raises(Interrupted):
        run(tmp_path / "two", {"mode": "async", "microbatches": 1, "training.max_epochs": 50.0})
    assert len(stopped) == 2
    for pid in stopped:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("dies", [False, slow(True)])
def test_ray_asynchronous_workers_share_a_stream(dies, cluster, tmp_path, monkeypatch):
    """Each worker reads a section of the file. Workers and servers die; the run is interrupted, and
    another number of workers resumes it."""
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    lines = ""
    for word in ("yes", "no"):
        turns = [{"speaker": who, "text": text} for who, text in (("a", "say it"), ("b", word))]
        lines += json.dumps({"turns": turns, "note": 600 * "x"}) + "\n"
    train.write_text(lines * 50)
    dev.write_text(lines)
    config = on_files("streaming = true", train=train, dev=dev).replace('"inline"', '"batch"')
    config = config.replace("thincdialog.ParlAIText.v1", "thincdialog.Conversations.v1")
    given = {"mode": "async", "microbatches": 1, "world.batcher.size": 2, "snapshot_every": 5}
    given.update({"training.max_epochs": 4.0, "training.eval_every_steps": 0, "max_restarts": 9})
    runners, left, start_epoch = [], [], AsyncRunner.start_epoch

    def seeing_start_epoch(runner, epoch):
        start_epoch(runner, epoch)
        runners.append(runner)
        assert len(runner.origin["before"]) == runner.num_workers

    monkeypatch.setattr(AsyncRunner, "start_epoch", seeing_start_epoch)
    if dies:
        # A worker also dies as an epoch begins that has another number of shares.
        victims = [("end_at", server), ("end_at", last_worker), ("start_epoch", server)]
        victims += 3 * [("start_epoch", last_worker)]
        left = killing(monkeypatch, ASYNC_CALLS, victims)
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        interrupting(patch, lambda runner: None, least=60)
        run(tmp_path / "run", given, config)
    rows = run(tmp_path / "run", {**given, "num_workers": 3}, config, resume=True)[1]
    assert not left and {runner.n_shares for runner in runners} == {2, 3}
    assert (rows[-1]["epoch"], rows[-1]["examples"]) == (4.0, 400)


def test_ray_fewer_examples_than_workers(cluster, tmp_path):
    """There are two training examples, one dev example and four workers."""
    train, dev = tmp_path / "train.txt", tmp_path / "dev.txt"
    rest = "label_candidates:yes|no\tepisode_done:True\n"
    lines = [f"text:say {word}\tlabels:{word}\t{rest}" for word in ("yes", "no")]
    train.write_text("".join(lines))
    dev.write_text(lines[0])
    config = on_files(train=train, dev=dev)
    few = {"microbatches": 4, "world.batcher.size": 1, "training.max_epochs": 2.0}
    alone = run(tmp_path / "alone", {**few, "num_workers": 0}, config)
    assert alone[1][-1]["examples"] == 4
    # On a busy machine, stderr also says that workers have not started yet.
    assert run(tmp_path / "four", {**few, "num_workers": 4}, config)[:2] == alone[:2]
    late = {**few, "mode": "async", "microbatches": 1, "num_workers": 4}
    _, rows, _ = run(tmp_path / "late", late, config)
    assert rows[-1]["examples"] == 4 and sum(staleness(rows).values()) == 4


@pytest.mark.slow
def test_ray_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_runner, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"'ray', which is not installed.*thincdialog\[ray\]"):
        run(tmp_path / "run")
    run(tmp_path / "alone", {"num_workers": 0, "training.max_steps": 1})


def test_ray_too_few_processors_names_both_numbers(cluster, tmp_path):
    with pytest.raises(DialogError, match="num_workers = 5 needs 5 CPUs.*cluster has 4"):
        run(tmp_path / "five", {"num_workers": 5})
    with pytest.raises(DialogError, match="num_workers = 2 needs 4 GPUs.*cluster has 2"):
        run(tmp_path / "gpus", {"num_gpus_per_worker": 2})


def test_ray_an_address_without_a_server_is_refused_at_once():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(DialogError, match=f"no cluster answers at '{address}': .*refused"):
            check_cluster_answers(address)
    for address in ("auto", "ray://nowhere:10001"):  # Ray checks these itself.
        check_cluster_answers(address)


CODE = """
from thincdialog.api import registry


@registry.layers("fails_at_last.v1")
def fails_at_last(path: str):
    from thinc.api import Model
    calls = []

    def forward(model, X, is_train):
        calls.append(len(calls))
        if is_train and len(calls) > 6:
            raise ValueError("seven are too many")
        return X, lambda dY: dY

    return Model("fails", forward)
"""
BEFORE = """[agent.model.encoder]
@layers = "chain.v1"

[agent.model.encoder.*.bag]
@models = "thincdialog.BagEncoder.v1"
width = 16

[agent.model.encoder.*.fails]
@layers = "fails_at_last.v1"
path = ""

[world]"""


ELSEWHERE = """
import pickle, sys
from thincdialog.runners.recipe import make_experiment
with open(sys.argv[1], "rb") as file:
    made, _ = make_experiment(pickle.load(file), "node7")
print([node.name for node in made.learner.model.walk()].count("fails") > 0)
"""


def test_ray_an_error_in_a_worker_names_its_place(cluster, tmp_path):
    code = tmp_path / "mine.py"
    code.write_text(CODE)
    begin, end = CONFIG.index("[agent.model.encoder]"), CONFIG.index("[world]")
    config = CONFIG[:begin] + BEFORE + CONFIG[end + len("[world]") :]
    with pytest.raises(WorkerError) as caught:
        run(tmp_path / "run", {}, config, code=code)
    assert "seven are too many" in str(caught.value)
    assert "mine.py:13" in caught.value.brief
    assert caught.value.examples


def test_ray_a_dry_run_counts_the_memory_of_all_workers():
    pytest.importorskip("ray")
    found = dry_run(CONFIG, overrides={"runner.num_workers": 3}, stderr=io.StringIO())
    assert found.memory["gradients"] == 3 * found.memory["weights"]


def test_ray_invalid_settings_are_refused(tmp_path):
    for name, value, says in (
        ("num_workers", -1, "give 0 or more"),
        ("microbatches", 0, "give 1 or more"),
        ("num_gpus_per_worker", 1.5, "give a whole number, or a fraction of one GPU"),
        ("num_gpus_per_worker", 0.00001, "with at most 4 decimals"),
        ("num_gpus_per_worker", math.nan, "give 0 or more"),
        ("num_cpus", -1, "'num_cpus' of thincdialog.Ray.v1 is -1.*give 1 or more"),
        ("object_store_memory", 5, "give 78643200 or more"),
        ("mode", "both", "sync"),
    ):
        with pytest.raises(ConfigError, match=says):
            run(tmp_path / "run", {name: value})


@pytest.mark.skipif(has_cupy, reason="needs workers without CuPy")
def test_ray_a_worker_that_cannot_use_its_gpu_says_so(cluster, tmp_path):
    said = "worker on node .* cannot use the GPU .*CuPy is not installed.*num_gpus_per_worker = 0"
    with pytest.raises(DialogError, match=said):
        run(tmp_path / "run", {"num_gpus_per_worker": 1})


@pytest.mark.gpu
def test_ray_a_gpu_id_is_refused_if_workers_have_gpus(tmp_path):
    with pytest.raises(ConfigError, match="from Ray, but gpu_id = 0 names one.*--gpu-id -1"):
        run(tmp_path / "run", {"num_gpus_per_worker": 1, "system.gpu_id": 0})


def test_ray_models_without_a_gradient_are_refused(tmp_path, root):
    given = {"@runners": "thincdialog.Ray.v1", "num_workers": 0}
    with pytest.raises(ConfigError, match="trains on one example at a time.*Hogwild"):
        run(tmp_path / "run", given, root / "configs" / "starspace.cfg")


def test_ray_workers_evaluate_after_training_as_one_process_does(cluster, tmp_path, monkeypatch):
    """Workers evaluate at the end of ``train``, and in ``evaluate``."""
    config = CONFIG.replace("n_test = 10", "n_test = 9")
    quiet = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    alone = {"runner.num_workers": 0}
    one = train(config, output=tmp_path / "one", overrides=alone, **quiet)
    in_detail = evaluate_in_detail(tmp_path / "one", overrides=alone)
    monkeypatch.delattr(BatchWorld, "_parley")  # This process must not evaluate.
    two = train(config, output=tmp_path / "two", **quiet)
    assert two.scores == one.scores
    found = evaluate_in_detail(tmp_path / "two")
    assert (found.scores, found.intervals) == (in_detail.scores, in_detail.intervals)
    assert found.predictions == in_detail.predictions


def on_files(more="", **splits):
    """Return a config whose data is in files."""
    config = CONFIG.replace("thincdialog.CoffeeOrder.v1", "thincdialog.ParlAIText.v1")
    begin, end = config.index("n_train"), config.index("[tasks.coffee.mut")
    paths = "".join(f'{name} = "{split}"\n' for name, split in splits.items())
    return f"{config[:begin]}{paths}{more}\n{config[end:]}"


def of_files(more="", **splits):
    """Return an experiment on files of eight exchanges, and the recipe that workers get."""
    for split in splits.values():
        split.write_text("text:hi\tlabels:ho\tepisode_done:True\n" * 8)
    experiment = Experiment.from_config(on_files(more, **splits))
    with experiment.working():
        teacher = experiment.training_split()
        experiment.agent.initialize(teacher, tokenizer=experiment.tokenizer)
        return experiment, recipe_of(experiment, teacher)


def test_ray_data_that_a_node_lacks_is_named(tmp_path):
    file = tmp_path / "talks.txt"
    experiment, recipe = of_files(train=file)
    made, there = make_experiment(recipe, "node7")
    assert there.n_examples == 8
    assert (made.learner.weights == experiment.learner.weights).all()
    file.unlink()
    with pytest.raises(DialogError, match="node node7: .*talks.txt.*same path"):
        make_experiment(recipe, "node7")
    file.write_text("text:ho\tlabels:hi\tepisode_done:True\n" * 8)
    with pytest.raises(DataError, match="training data on node node7 differs from the data"):
        make_experiment(recipe, "node7")


def test_ray_streamed_data_may_be_copied_and_is_compared(tmp_path):
    file = tmp_path / "talks.txt"
    _, recipe = of_files("streaming = true\n", train=file)
    os.utime(file, (1, 1))
    make_experiment(recipe, "node7")
    content = file.read_text()
    file.write_text(content[:5] + "x" + content[6:])
    with pytest.raises(DataError, match="training data on node node7 differs from the data"):
        make_experiment(recipe, "node7")


def test_ray_other_dev_data_is_named_with_the_node(tmp_path):
    dev = tmp_path / "dev.txt"
    experiment, recipe = of_files(train=tmp_path / "talks.txt", dev=dev)
    with experiment.working():
        data = data_prints(experiment.evaluation_split("dev"))
    actor = WorkerActor()
    actor.call("make", recipe)
    assert "" in actor.call("evaluate", "dev", 0, 1, data, None, {}, None)[0]
    other = WorkerActor()
    other.call("make", recipe)
    dev.write_text("text:ho\tlabels:hi\tepisode_done:True\n" * 8)
    error = other.call("evaluate", "dev", 0, 1, data, None, {}, None).error(3)
    where = f"dev data on node {socket.gethostname()} differs from the data of the run"
    assert isinstance(error, DataError) and where in str(error)
    assert str(error).startswith(str(dev))


@pytest.mark.parametrize("agent", ["", '[agent]\n@agents = "thincdialog.MostFrequent.v1"\n'])
def test_ray_workers_that_only_evaluate_need_no_training_data(tmp_path, agent):
    """This holds for saved models with and without weights. Labels may be missing, as in an
    evaluation in this process."""
    files = {"train": tmp_path / "talks.txt", "test": tmp_path / "test.txt"}
    for file in files.values():
        lines = (f"text:hi\tlabels:ho {n}\tepisode_done:True\n" for n in range(8))
        file.write_text("".join(lines))
    config = on_files(**files).replace('"inline"', '"batch"')
    if agent:
        config = config[: config.index("[agent]")] + config[config.index("[world]") :] + agent
        config = config.replace('"hits@1"', '"accuracy"')
    train(config, output=tmp_path / "run", stdout=io.StringIO(), stderr=io.StringIO(),
          overrides={"runner.num_workers": 0})  # fmt: skip
    files["train"].unlink()
    files["test"].write_text("text:hi\tepisode_done:True\n" * 3)
    experiment = Experiment.from_model(tmp_path / "run")
    with experiment.working(), tolerating(unlabelled=True):
        recipe = recipe_of(experiment, None)
        data = data_prints(experiment.evaluation_split("test"))
    actor = WorkerActor()
    assert actor.call("make", recipe) == os.getpid()
    _, recorder = actor.call("evaluate", "test", 1, 2, data, None, {}, Recorder())
    assert [row.text for row in recorder.predictions[""]] == ["hi"]


def test_ray_data_that_is_deleted_later_is_named_with_the_node(tmp_path):
    dev = tmp_path / "dev.txt"
    _, recipe = of_files(train=tmp_path / "talks.txt", dev=dev)
    actor = WorkerActor()
    assert actor.call("make", recipe) == os.getpid()
    dev.unlink()
    error = actor.call("evaluate", "dev", 0, 1, {}, None, {}, None).error(3)
    assert isinstance(error, DataError) and str(error).startswith(str(dev))
    assert str(error).endswith(f"(read by worker 3 on node {socket.gethostname()})")


def test_ray_a_full_folder_for_temporary_files_is_named(tmp_path):
    experiment, recipe = of_files(train=tmp_path / "talks.txt")
    place = re.escape(str(temporary_folder()))
    with limited("RLIMIT_FSIZE", 100):
        with pytest.raises(DialogError, match=f"{place}  could not be written: File too large.*"):
            recipe_of(experiment, experiment.training_split())
        with pytest.raises(DialogError, match=f"{place}  could not be .* on node node7: File too"):
            make_experiment(recipe, "node7")
    gone = recipe._replace(temporary=str(tmp_path / "gone"))
    with pytest.raises(DialogError, match=f"{tmp_path}/gone  could not be written on node node7: "):
        make_experiment(gone, "node7")


def test_ray_files_of_a_worker_killed_as_it_starts_are_removed_at_the_next_start(tmp_path):
    _, recipe = of_files(train=tmp_path / "talks.txt")
    place = tmp_path / "temporary"
    place.mkdir()
    left, other = place / f".{AGENT}.01234567", place / "other"
    for folder in (left, other):
        folder.mkdir()
        (folder / "weights.npy").write_bytes(b"half of them")
    with held(place / AGENT, 0o700, is_folder=True) as of_another_who_starts:
        make_experiment(recipe._replace(temporary=str(place)), "node7")
        assert set(place.iterdir()) == {other, of_another_who_starts}


def test_ray_code_is_sent_to_workers(tmp_path):
    code = tmp_path / "mine.py"
    code.write_text(CODE.replace("fails_at_last", "comes_along"))
    another = tmp_path / "another" / "mine.py"  # It has the same name.
    another.parent.mkdir()
    another.write_text("import math\n")
    begin, end = CONFIG.index("[agent.model.encoder]"), CONFIG.index("[world]")
    config = CONFIG[:begin] + BEFORE.replace("fails_at_last", "comes_along")
    config += CONFIG[end + len("[world]") :]
    experiment = Experiment.from_config(config, code=[code, another])
    with experiment.working():
        teacher = experiment.training_split()
        experiment.agent.initialize(teacher, tokenizer=experiment.tokenizer)
        recipe = recipe_of(experiment, teacher)
    code.unlink()
    another.unlink()
    (tmp_path / "recipe").write_bytes(pickle.dumps(recipe))
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "recipe")]
    env = {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)}
    said = subprocess.run(command, capture_output=True, text=True, env=env)
    assert said.stdout == "True\n", said.stderr


def test_ray_state_of_another_kind_of_step_is_refused(tmp_path):
    run(tmp_path / "run", {"num_workers": 0, "training.checkpoint_every_steps": 2})
    with pytest.raises(ConfigError, match="microbatches"):
        run(tmp_path / "run", {"num_workers": 0, "microbatches": 3}, resume=True)
    state = json.loads(sorted((tmp_path / "run").rglob("state.json"))[-1].read_text())
    assert state["loop"]["runner"]["microbatches"] == 2
