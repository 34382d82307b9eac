"""Several nodes on this machine, nodes that die, and signals, each in separate processes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import start
from tests.runners.cluster.test_ray import CONFIG, on_files
from tests.training.examples import weights
from thincdialog.cli.main import main
from thincdialog.errors import DialogError
from thincdialog.runners.cluster.ray_cluster import check_cluster_answers, is_place
from thincdialog.runs.run_log import read_log

pytestmark = pytest.mark.xdist_group("ray")
# By default, Ray's processes look for a server that is gone for a whole minute.
BRIEFLY = {
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "RAY_gcs_server_request_timeout_seconds": "10",
}
NODES = """
import io, os, sys, tempfile
import ray
from ray.cluster_utils import Cluster
from thincdialog.api import train
from thincdialog.runners.cluster.async_runner import AsyncRunner
from thincdialog.runners.cluster.sync_runner import SyncRunner

folder, of_ray, mode, n_gpus = sys.argv[1:]
# Cluster writes into this folder, too, whatever `temp_dir` is.
os.makedirs(os.path.join(tempfile.gettempdir(), "ray"), exist_ok=True)
of_node = {"num_cpus": 1, "num_gpus": int(n_gpus), "temp_dir": of_ray}
cluster = Cluster(initialize_head=True, head_node_args=of_node)
other = cluster.add_node(**of_node)
kind = SyncRunner if mode == "sync" else AsyncRunner
take = kind.take

def slow_take(runner, step, room):
    if step >= 6 and len(cluster.list_all_nodes()) == 2:
        cluster.remove_node(other, allow_graceful=False)
    return take(runner, step, min(room, 3))

kind.take = slow_take
told = io.StringIO()
train(
    open(folder + "/my.cfg").read(),
    output=folder + "/nodes",
    overrides={
        "runner.mode": mode,
        "runner.address": cluster.address,
        "runner.num_cpus": 1,
        "runner.num_gpus_per_worker": int(n_gpus),
        "runner.snapshot_every": 4,
    },
    stdout=io.StringIO(),
    stderr=told,
)
print(told.getvalue())
ray.shutdown()
cluster.shutdown()
"""

DYING = """
import os, sys, time
from thincdialog.api import train
from thincdialog.runners.cluster.sync_runner import SyncRunner

take, pids = SyncRunner.take, []

def killing_take(runner, step, room):
    if step >= 6 and not pids:
        pids.extend(runner.workers.pids)
        os.kill(pids[-1], 9)
    if pids:
        time.sleep(0.3)  # Ray reports the death after a while.
    return take(runner, step, min(room, 3))

SyncRunner.take = killing_take
train(open(sys.argv[1] + "/my.cfg").read(), output=sys.argv[1] + "/run")
"""


@pytest.fixture(autouse=True)
def config(tmp_path):
    (tmp_path / "my.cfg").write_text(CONFIG)


def of_ray(session):
    """Return the processes that have the mark `session` in their command line or environment."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            line, stat = (
                Path("/proc", entry, name).read_bytes().decode(errors="replace")
                for name in ("cmdline", "environ")
            )
        except OSError:
            continue
        if session in line or session in stat:
            found.append((int(entry), line.replace("\0", " ")))
    return found


def wait_for_end(session):
    """Wait until all processes of a run have ended, except Ray's agents."""
    until = time.monotonic() + 150
    while any(not re.match("ray::.*Agent", line) for _, line in of_ray(session)):
        assert time.monotonic() < until, of_ray(session)
        time.sleep(0.2)


@pytest.fixture(scope="module")
def sessions():
    """Yield a list for the marks of runs. After all tests of this file, no process has such a mark.
    (When a cluster dies, Ray's agents try for a whole minute to report it.)"""
    marks = []
    yield marks
    until = time.monotonic() + 150
    while (left := [each for mark in marks for each in of_ray(mark)]) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left


def begin(folder, environment, sessions, *options):
    """Start a run in a process that writes into the file "told", and mark its processes."""
    sessions.append(f"THINCDIALOG_TEST={folder}")
    with open(folder / "told", "w") as told:
        return start(
            folder,
            *["train", "my.cfg", "-o", "run", "--runner.num_cpus", "2", *options],
            env={**environment, **BRIEFLY, "THINCDIALOG_TEST": str(folder)},
            stderr=told,
            start_new_session=True,
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun, number",
    [
        ("gcs_server", signal.SIGINT),
        ("default_worker.py|ray::", signal.SIGTERM),
        ("ray::(?!IDLE)", signal.SIGINT),
    ],
)
def test_ray_cluster_a_signal_as_it_starts_leaves_no_process(
    begun, number, ray_environment, temporary, sessions, tmp_path
):
    process = begin(tmp_path, {**ray_environment, "TMPDIR": str(temporary)}, sessions)
    while not any(re.search(begun, line) for _, line in of_ray(sessions[-1])):
        assert process.poll() is None, (tmp_path / "told").read_text()
        time.sleep(0.01)
    process.send_signal(number)
    code = process.wait(timeout=120)
    wait_for_end(sessions[-1])
    told = (tmp_path / "told").read_text()
    assert code == 128 + number and "Interrupted before there was anything to save" in told


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ray_cluster_a_signal_leaves_nothing_and_the_run_can_resume(
    number, ray_environment, temporary, sessions, tmp_path
):
    options = ["--training.max_epochs", "0", "--training.checkpoint_every_steps", "5"]
    options += ["--training.eval_every_epochs", "0", "--training.eval_every_steps", "0"]
    steps = "--training.max_steps"
    env = {**ray_environment, "TMPDIR": str(temporary)}
    process = begin(tmp_path, env, sessions, steps, "1000000", *options)
    while not list((tmp_path / "run").glob("checkpoint-*5*")):
        assert process.poll() is None, (tmp_path / "told").read_text()
        time.sleep(0.1)
    # In a terminal, Ctrl-C goes to all processes.
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    process.wait(timeout=60)
    wait_for_end(sessions[-1])
    assert bool(list(temporary.glob("td-ray-*"))) == (number == signal.SIGKILL)
    last = max(int(path.name.split("-")[1]) for path in (tmp_path / "run").glob("checkpoint-*"))
    alone = ["train", str(tmp_path / "my.cfg"), "--runner.num_workers", "0", *options]
    alone += [steps, str(last + 10), "-o"]
    assert main([*alone, str(tmp_path / "run"), "--resume"]) == 0
    assert main([*alone, str(tmp_path / "alone")]) == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "alone")


def though_a_node_dies(mode, folder, ray_environment, ray_folder, n_gpus=0):
    """Train with a worker on each of two nodes, one of which dies, and then in this process.

    n_gpus (int): GPUs of each node.

    RETURNS (str): The output of the first run.
    """
    command = [sys.executable, "-c", NODES, str(folder), ray_folder, mode, str(n_gpus)]
    given = {"capture_output": True, "text": True, "env": ray_environment, "timeout": 300}
    done = subprocess.run(command, **given)
    assert done.returncode == 0, done.stderr[-3000:]
    alone = ["-o", str(folder / "alone"), "--runner.num_workers", "0", "--runner.mode", mode]
    alone += ["--gpu-id", str(n_gpus - 1)]
    assert main(["train", str(folder / "my.cfg"), *alone]) == 0
    return done.stdout


@pytest.mark.slow
def test_ray_cluster_ends_with_the_same_weights_though_a_node_dies(
    ray_environment, ray_folder, tmp_path
):
    told = though_a_node_dies("sync", tmp_path, ray_environment, ray_folder)
    assert "resumed with 1 worker from step" in told, told
    assert weights(tmp_path / "nodes") == weights(tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.gpu
def test_ray_cluster_of_gpus_ends_with_the_same_weights_though_a_node_dies(
    ray_environment, ray_folder, tmp_path
):
    told = though_a_node_dies("sync", tmp_path, ray_environment, ray_folder, n_gpus=1)
    assert "resumed with 1 worker from step" in told, told
    assert weights(tmp_path / "nodes") == weights(tmp_path / "alone")


@pytest.mark.slow
def test_ray_cluster_asynchronous_learns_each_example_once_though_a_node_dies(
    ray_environment, ray_folder, tmp_path
):
    told = though_a_node_dies("async", tmp_path, ray_environment, ray_folder)
    # The server is on the node of this process. Either worker may start first and be number 0.
    assert len(re.findall(r"worker [01] died", told)) == 1, told
    ends = [read_log(tmp_path / name / "log.jsonl")[-1] for name in ("nodes", "alone")]
    for name in ("step", "epoch", "examples"):
        assert ends[0][name] == ends[1][name]


@pytest.mark.slow
def test_ray_cluster_that_makes_itself_a_token_survives_a_death(
    ray_environment, temporary, tmp_path
):
    env = {**ray_environment, "TMPDIR": str(temporary), "HOME": str(temporary)}
    del env["RAY_AUTH_MODE"]
    command = [sys.executable, "-c", DYING, str(tmp_path)]
    given = {"capture_output": True, "text": True, "env": env, "timeout": 300}
    done = subprocess.run(command, **given)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (temporary / ".ray" / "auth_token").exists()
    assert "worker 1 died" in done.stderr, done.stderr


@pytest.mark.slow
def test_ray_cluster_whose_workers_have_readers_leaves_nothing(
    ray_environment, temporary, tmp_path
):
    data, dev, config = tmp_path / "talks.txt", tmp_path / "dev.txt", tmp_path / "my.cfg"
    line = "text:hi\tlabels:ho\tlabel_candidates:hi|ho\tepisode_done:True\n"
    data.write_text(line * 60_000)  # Enough data for readers to start.
    dev.write_text(line)
    config.write_text(on_files("streaming = true\n", train=data, dev=dev))
    command = [sys.executable, "-m", "thincdialog", "train", str(config)]
    command += ["--output", str(tmp_path / "out"), "--training.max_steps", "20"]
    command += ["--loader.workers", "2"]
    env = {**ray_environment, "TMPDIR": str(temporary)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "out" / "log.jsonl").exists()
    assert os.listdir(temporary) == []


def test_ray_cluster_invalid_addresses_are_refused():
    for address in ("local", ""):
        with pytest.raises(
            DialogError, match="is not the address of a cluster: leave it out to start"
        ):
            check_cluster_answers(address)
    check_cluster_answers("auto")  # Ray looks for a cluster itself.
    places = ["127.0.0.1:6379", "[::1]:6379", "head.of.mine:1"]
    others = ["auto", "nowhere", "ray://head:10001", ":6379", "head:port"]
    assert all(map(is_place, places)) and not any(map(is_place, others))
