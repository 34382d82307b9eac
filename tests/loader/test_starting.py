"""What holds while worker processes start: of signals, of strangers' folders, of a parent's end."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from thincdialog.loader.hands import ProcessHands

# Dies when a process was started, and nothing was told it yet.
DYING = """
import os, sys
from multiprocessing import forkserver, util
from thincdialog.loader.hands import ProcessHands
from thincdialog.loader.readers import Readers

def dying(real, is_it):
    def start(*given):
        found = real(*given)
        if is_it(given):
            os.kill(os.getpid(), 9)
        return found
    return start

if __name__ == "__main__":
    Readers(1)
    util.spawnv_passfds = dying(util.spawnv_passfds, lambda given: "spawn_main" in str(given))
    forkserver.connect_to_new_process = dying(forkserver.connect_to_new_process, bool)
    ProcessHands(dict, 1, sys.argv[1], print).wait(60.0)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_starting_a_process_whose_parent_dies_at_once_is_silent(tmp_path, root, method):
    (tmp_path / "dying.py").write_text(DYING)
    command = [sys.executable, "dying.py", method]
    given = {**os.environ, "PYTHONPATH": str(root)}
    # All that was started has its stderr, so this waits for the end of all.
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, "", "")


def test_starting_a_process_that_cannot_read_what_it_is_told_is_heard(tmp_path, root):
    """No more is hidden than that."""
    raising = "import sys\nif __name__ != '__main__':\n    raise EOFError('of the script')\n"
    (tmp_path / "dying.py").write_text(raising + DYING.replace("os.kill(os.getpid(), 9)", "pass"))
    command = [sys.executable, "dying.py", "spawn"]
    given = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True)
    assert "EOFError: of the script" in done.stderr


WORKING = """
import os, sys
from thincdialog.loader.hands import ProcessHands
from thincdialog.loader.readers import Readers

if __name__ == "__main__":
    Readers(1)
    hands = ProcessHands(dict, 1, "forkserver", print)
    while not hands.n_ready:
        hands.wait(60.0)
    print(*os.listdir(os.environ["TMPDIR"]))
    if sys.argv[1] == "killed":
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
    hands.end()
"""


@pytest.mark.slow
def test_what_a_killed_process_has_left_of_a_fork_server_goes_at_the_next_start(tmp_path, root):
    (tmp_path / "working.py").write_text(WORKING)
    given = {**os.environ, "PYTHONPATH": str(root)}

    def run(how):
        command = [sys.executable, "working.py", how]
        return subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True)

    # The path of a socket must be short, and that of ``tmp_path`` is not.
    with TemporaryDirectory(dir="/tmp") as name:
        given["TMPDIR"], place = name, Path(name)
        killed = run("killed")
        assert killed.returncode == -signal.SIGKILL and len(killed.stdout.split()) == 1
        assert [path.name for path in place.iterdir()] == killed.stdout.split()
        again = run("not")
        assert (again.returncode, again.stderr) == (0, "") and len(again.stdout.split()) == 1
        assert again.stdout != killed.stdout and list(place.iterdir()) == []


def test_a_temporary_folder_with_too_long_a_name_is_told_of(tmp_path, root):
    place = tmp_path / ("x" * 100)
    place.mkdir()
    (tmp_path / "working.py").write_text(WORKING)
    given = {**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(place)}
    command = [sys.executable, "working.py", "not"]
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True)
    assert done.returncode == 1 and "could not be started: AF_UNIX path too long" in done.stderr


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_started_processes_leave_signals_to_their_parent(method):
    hands = ProcessHands(len_of_words, 1, method, print)
    try:
        while not hands.n_ready:
            assert not hands.wait(60.0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(hands._workers[0].process.pid, number)
        hands.give(1, "three")
        done = hands.wait(60.0)
        assert [(each.task, each.value) for each in done] == [(1, 5)]
    finally:
        hands.end()


def len_of_words():
    return len
