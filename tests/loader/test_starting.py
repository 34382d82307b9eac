"""Starting worker processes: environment variables, temporary folders and unguarded scripts."""

import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from tests.processes import slow
from thincdialog.loader.starting import SAFE_PATH, starting_processes

WORKING = """
import os, sys
from tests.loader.sources import Echo
from thincdialog.loader.pool import Job, Pool

if __name__ == "__main__":
    pool = Pool(1, "forkserver")
    Job(pool, Echo()).submit(0).result(60)
"""


def run_script(folder, root, text, **more):
    (folder / "working.py").write_text(text)
    given = {**os.environ, "PYTHONPATH": str(root), **more}
    command = [sys.executable, "working.py"]
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True)


def test_a_temporary_folder_with_too_long_a_name_is_reported(tmp_path, root):
    place = tmp_path / ("x" * 100)
    place.mkdir()
    done = run_script(tmp_path, root, WORKING, TMPDIR=str(place))
    assert done.returncode == 1 and "could not be started: AF_UNIX path too long" in done.stderr


def test_starting_by_several_threads_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.delenv(SAFE_PATH, raising=False)
    entered, left = threading.Event(), []

    def start():
        with starting_processes():
            entered.set()
            left.append(os.environ[SAFE_PATH])
        left.append(os.environ.get(SAFE_PATH))

    with starting_processes():
        thread = threading.Thread(target=start)
        thread.start()
        entered.wait(0.2)
        assert not entered.is_set()
    thread.join()
    assert left == ["1", None] and SAFE_PATH not in os.environ
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


UNGUARDED = """
from tests.loader.sources import Numbers
from thincdialog.loader import readers
from thincdialog.teachers import Teacher

readers.LOOK_SECONDS = readers.WORTH_SECONDS = 0.0
task = Teacher({{"train": Numbers(10**4, 0.001)}}, streaming=True)
task.read_with(readers.Readers(1, "{}"))
teacher = task.for_split("train", training=True)
while True:
    teacher.act()
    teacher.observe({{}})
"""


@pytest.mark.parametrize("method", [slow("spawn"), "forkserver"])
def test_a_script_without_a_main_guard_is_reported(tmp_path, root, method):
    done = run_script(tmp_path, root, UNGUARDED.format(method))
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "before it could start" in line]
    assert re.search(r"Worker 0: its process \d+ ended, with exit code 1 before it could", line)
    assert line.endswith('under `if __name__ == "__main__":`, or set [loader] workers = 0')
    assert "[loader] workers was used while a worker was importing the script" in done.stderr
