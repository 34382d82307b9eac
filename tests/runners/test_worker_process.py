"""Workers in real processes, which may die in any way, and leave no process or open file."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.processes import limited, open_channels, slow
from tests.runners import toys
from thincdialog.errors import DataError, WorkerError
from thincdialog.runners.worker_process import worker_processes


@pytest.fixture(scope="module")
def crew():
    """Yield a crew of two workers that do not fail by themselves."""
    with worker_processes(2, toys.make_toy, {}) as workers:
        crew = toys.crew_of(workers)
        crew.each("begin")
        yield crew
        crew.end()


def is_running(pid: int) -> bool:
    """Return whether a process is running, and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_gone(pids) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and any(map(is_running, pids)):
        time.sleep(0.05)
    assert [pid for pid in pids if is_running(pid)] == []


def test_worker_processes_work_like_workers_in_threads(crew):
    expected = [[*range(20), True]] * 2
    assert toys.run(crew) == toys.run(crew) == expected
    pids = crew.each("process")
    assert len({os.getpid(), *pids}) == 3
    for pid in pids:  # Workers ignore signals; the parent handles them.
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    large = [os.urandom(3_000_000), os.urandom(3_000_000)]
    assert crew.each("echo", large) == large
    assert crew.each("process") == pids
    # Signals that were blocked while the workers started are no longer blocked.
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & {signal.SIGINT, signal.SIGTERM}


@pytest.mark.parametrize(
    "call, arguments, text",
    [
        ("fail", ["raise"], "ZeroDivisionError: nothing is left\nTraceback"),
        ("fail", ["data"], "days.txt:7  the sky .* .read by worker 1.$"),
        ("fail", ["leave"], "SystemExit: 4"),
        (
            "unspeakable",
            [],
            "a value cannot be sent between processes: Can't .*lambda.*"
            'or set executor = "thread"$',
        ),
    ],
)
def test_worker_processes_an_error_of_any_kind_comes_back(crew, call, arguments, text):
    crew.ask(1, call, *arguments)
    kind, who = (DataError, "") if arguments == ["data"] else (WorkerError, "Worker 1: ")
    with pytest.raises(kind, match=f"^{who}{text}"):
        while crew.busy:
            crew.listen()
    crew.busy.clear()
    assert crew.each("echo", 5) == [5, 5]


@pytest.mark.slow
def test_worker_processes_that_exit_are_noticed_at_once():
    settings = {"wrong_one": 1, "wrong": "exit", "most": 10**6, "delay": 0.001}
    n_threads, children = threading.active_count(), set(multiprocessing.active_children())
    with worker_processes(2, toys.make_toy, settings) as workers:
        crew = toys.crew_of(workers)
        crew.each("begin")
        pids = crew.each("process")
        began = time.monotonic()
        text = r"its process \d+ ended, with exit code 3$"
        with pytest.raises(WorkerError, match=f"^Worker 1: {text}"):
            toys.run(crew)
        assert time.monotonic() - began < 60
    # The other worker, which would have continued, was ended, too.
    assert_gone(pids)
    crew.end()
    until = time.monotonic() + 60
    while threading.active_count() > n_threads and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= n_threads
    assert set(multiprocessing.active_children()) == children


@pytest.mark.slow
def test_worker_processes_that_stop_are_killed_after_max_wait():
    with worker_processes(1, toys.make_toy, {}) as workers:
        toys.crew_of(workers).each("begin")  # Python's helper for starting processes stays open.
    before = open_channels()
    with worker_processes(1, toys.make_toy, {}) as workers:
        crew = toys.crew_of(workers)
        crew.each("begin")
        opened = open_channels() - before
        pids, crew.patience.max_wait = crew.each("process"), 0.5
        os.kill(pids[0], signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(WorkerError, match="^Worker 0: no answer within 0.5 seconds"):
            crew.each("echo", bytes(10**7))  # The worker does not read it.
    assert time.monotonic() - began < 60
    assert_gone(pids)
    assert len(opened) >= 2  # One for messages, one that shows when it ends.
    assert not opened & open_channels()


@pytest.mark.slow
def test_worker_processes_whose_worker_cannot_be_made_report_why():
    with worker_processes(1, toys.broken_toy, {"how": "data"}) as workers:
        with pytest.raises(DataError, match="^days.txt:7  the sky .* .read by worker 0.$"):
            toys.crew_of(workers).each("begin")


@pytest.mark.slow
def test_worker_processes_that_cannot_be_started_say_what_to_do():
    multiprocessing.get_context("spawn").Lock()  # Starts Python's resource tracker.
    children = set(multiprocessing.active_children())
    text = "its process could not be started: Too many open files. Lower .runner. workers"
    with limited("RLIMIT_NOFILE", len(os.listdir("/dev/fd")) + 9):
        with pytest.raises(WorkerError, match=f"^Worker [0-7]: {text}, or raise the limit"):
            with worker_processes(8, toys.make_toy, {}):
                pass
    assert set(multiprocessing.active_children()) == children


# Prints the ids of its worker processes, and then does what its argument says.
SCRIPT = """
import os, pathlib, sys
from tests.runners import toys
from thincdialog.runners.shared_arrays import shared_arrays
from thincdialog.runners.worker_process import worker_processes

def main(mode):
    sharing = shared_arrays([("counts", (2,), "<f4")])
    memory, shared = sharing.__enter__()
    settings = {"most": 10 if mode == "normal" else 10**6, "delay": 0.001}
    started = worker_processes(2, toys.make_toy, {"memory": memory, **settings})
    workers = started.__enter__()
    crew = toys.crew_of(workers)
    crew.each("begin")
    pids = crew.each("process")
    maps = pathlib.Path(f"/proc/{pids[0]}/maps").read_text()
    assert "memfd:thincdialog" in maps and "/dev/shm" not in maps
    print(*pids, flush=True)
    if mode == "exit":
        os._exit(7)
    if mode != "forgotten":
        toys.run(crew)
        assert shared["counts"].tolist() == [1, 1]
        started.__exit__(None, None, None)
        sharing.__exit__(None, None, None)
    return started, sharing, crew
"""
GUARDED = 'if __name__ == "__main__":\n    kept = main(sys.argv[1])\n'


def start(root: Path, *arguments: str, stdin=None) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-W", "error", *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def script(tmp_path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + GUARDED, encoding="utf8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("mode, code", [("normal", 0), ("forgotten", 0), ("exit", 7)])
def test_exits_leave_no_processes(root, script, mode, code):
    process = start(root, str(script), mode)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, "")
    assert_gone(map(int, out.split()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, to_group",
    [
        (signal.SIGKILL, False),
        (signal.SIGTERM, True),
        (signal.SIGINT, True),
        (signal.SIGINT, False),
    ],
)
def test_exits_by_a_signal_leave_no_processes(root, script, number, to_group):
    """The program, unlike a training run, does not handle signals."""
    process = start(root, str(script), "wait")
    pids = list(map(int, process.stdout.readline().split()))
    assert len(pids) == 2
    time.sleep(0.2)
    (os.killpg if to_group else os.kill)(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number, err
    assert_gone(pids)
    # Only the parent prints a traceback of Ctrl-C.
    assert err.count("Traceback") == (number == signal.SIGINT)
    assert "leaked" not in err and "Exception ignored" not in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_file, said",
    [
        (True, r'put all .* runs under `if __name__ == "__main__":`, or set executor = "thread"$'),
        slow(False, r"is not a file \(perhaps it came from standard input\): save it as a file"),
    ],
)
def test_exits_of_a_script_that_cannot_be_imported_say_what_to_do(root, script, is_file, said):
    if is_file:
        script.write_text(SCRIPT + "main('normal')\n", encoding="utf8")
        process = start(root, str(script))
    else:
        with script.open(encoding="utf8") as stdin:
            process = start(root, "-", "normal", stdin=stdin)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and out == ""
    # Lines of the other worker may come later, or in between.
    (last,) = [line for line in err.splitlines() if "before it could start" in line]
    assert "ended, with exit code 1 before it could start; see its own message. A wor" in last
    assert re.search(said, last)
    assert is_file == ("was used while a worker was importing the script" in err)
