"""However a run ends, nothing is left: no process, no memory, no word on stderr."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Runs an epoch; says which processes there are, and then does what it was told.
SCRIPT = """
import os, pathlib, sys
import numpy
from tests.parallel import toys
from thincdialog.parallel import ProcessWorkers, SharedArrays
from thincdialog.worlds import HogwildWorld

def main(mode):
    wrong = {"raise": {"30/0": "raise"}, "worker killed": {"30/0": "kill"}}.get(mode, {})
    shared = SharedArrays({"counts": numpy.zeros(2, dtype="f")})
    workers = ProcessWorkers(toys.recipe(n_episodes=50, wrong=wrong), 2, shared, stop_seconds=1)
    maps = pathlib.Path(f"/proc/{workers._processes[0].pid}/maps").read_text()
    assert "memfd:thincdialog" in maps and "/dev/shm" not in maps
    print(*(process.pid for process in workers._processes), flush=True)
    world = HogwildWorld(workers, max_wait=20)
    if mode in ("normal", "raise", "worker killed"):
        with world:
            assert toys.ids_of(toys.run_epoch(world)) == toys.all_ids(50)
    elif mode == "abandoned":
        world.parley()
    elif mode == "forgotten":
        del world, workers
    elif mode == "exit":
        os._exit(7)
    else:
        workers.ask(0, "fail", "hang")  # In the middle of something.
        print("waiting", flush=True)
        with world:
            world.start_epoch(0, 0)
    # Of one that was abandoned, the worker may or may not have come to its parley yet.
    wanted = {"normal": [50], "abandoned": [0, 1]}.get(mode, [0])
    assert shared.arrays["counts"].sum() in wanted, shared.arrays
    return shared
"""
RUN_MODULE = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv[1] = "normal"
runpy.run_module("some_module", run_name="__main__", alter_sys=True)
"""
GUARDED = 'if __name__ == "__main__":\n    kept = main(sys.argv[1])\n'


def segments():
    folder = Path("/dev/shm")
    return {path.name for path in folder.glob("psm_*")} if folder.is_dir() else set()


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


def pids_of(line: str):
    return [int(word) for word in line.split()]


def is_running(pid: int) -> bool:
    """Whether it is there, and not only until somebody asks how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_gone(pids) -> None:
    assert len(pids) == 2
    until = time.monotonic() + 5
    while time.monotonic() < until and any(map(is_running, pids)):
        time.sleep(0.05)
    assert [pid for pid in pids if is_running(pid)] == []


@pytest.fixture
def script(tmp_path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + GUARDED, encoding="utf8")
    return str(path)


@pytest.mark.parametrize(
    "mode, code, last",
    [
        ("normal", 0, ""),
        ("worker killed", 1, r"its process \d+ was killed by SIGKILL \(too little memory\?\)"),
        ("forgotten", 0, ""),
        pytest.param("raise", 1, "ZeroDivisionError: nothing is left", marks=pytest.mark.slow),
        pytest.param("abandoned", 0, "", marks=pytest.mark.slow),
        pytest.param("exit", 7, "", marks=pytest.mark.slow),
    ],
)
def test_exits_leave_nothing(root, script, mode, code, last):
    before = segments()
    process = start(root, script, mode)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert_gone(pids_of(out))
    assert segments() <= before
    if last:
        assert err.startswith("Traceback") and re.search(f"{last}$", err.strip(), re.M)
        assert "leaked" not in err and "Exception ignored" not in err
    else:
        assert err == ""


@pytest.mark.parametrize(
    "number, to_group",
    [
        (signal.SIGTERM, True),
        (signal.SIGKILL, False),
        (signal.SIGINT, True),
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, True, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, False, marks=pytest.mark.slow),
    ],
)
def test_exits_by_a_signal_leave_nothing(root, script, number, to_group):
    before = segments()
    process = start(root, script, "wait")
    pids = pids_of(process.stdout.readline())
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    (os.killpg if to_group else os.kill)(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number, err
    assert_gone(pids)
    assert segments() <= before
    # Only the parent speaks of Ctrl-C.
    assert err.count("Traceback") == (number == signal.SIGINT)
    assert "leaked" not in err and "Exception ignored" not in err


def test_exits_of_a_script_without_a_guard_say_what_is_wrong(root, tmp_path):
    path = tmp_path / "unguarded.py"
    path.write_text(SCRIPT + "main('normal')\n", encoding="utf8")
    process = start(root, str(path))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and out == ""
    last = err.strip().splitlines()[-1]
    assert "ended, with exit code 1 before it could begin; see its own message." in last
    assert 'put all that the script does under `if __name__ == "__main__":`' in last
    assert 'or set executor = "thread"' in last
    assert "was met while a worker was importing the script" in err


def test_exits_of_a_script_that_is_no_file_say_what_is_wrong(root, script):
    with Path(script).open(encoding="utf8") as stdin:
        process = start(root, "-", "normal", stdin=stdin)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and out == ""
    last = err.strip().splitlines()[-1]
    assert "before it could begin; see its own message. A worker that is a process" in last
    assert "this one is no file, as from standard input: save it as one, or set exec" in last


@pytest.mark.slow
def test_exits_of_code_without_a_file_leave_nothing(root):
    process = start(root, "-c", SCRIPT + "main('normal')")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert_gone(pids_of(out))


@pytest.mark.slow
def test_exits_of_a_module_leave_nothing(root, tmp_path):
    # As `python -m thincdialog` is one: it is imported again, under another name.
    (tmp_path / "some_module.py").write_text(SCRIPT + GUARDED, encoding="utf8")
    process = start(root, "-c", RUN_MODULE, str(tmp_path))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert_gone(pids_of(out))
