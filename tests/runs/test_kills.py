"""If training is killed at any point where it changes something, no process and no temporary file
is left, and the run can be resumed; with one worker, bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzzing import SEED, TIMES
from tests.runners.resuming import remains, same
from tests.training.examples import RANKER

CONFIG = RANKER.replace('"inline"', '"batch"').replace("n_train = 34", "n_train = 8")
CONFIG = CONFIG.replace("= 10", "= 4")
HOGWILD = "--runner.@runners=thincdialog.Hogwild.v1"
RUNNERS = {"alone": [], "thread": [HOGWILD], "process": [HOGWILD, "--runner.executor=process"]}
WORDS = ["train", "config.cfg", "--training.max_steps=2", "--training.n_samples=0"]
WORDS += ["--training.checkpoint_every_steps=1", "--training.eval_every_steps=1"]
# Seconds until the last process of a killed run has noticed, on a busy machine.
MOST_SECONDS = 60.0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Start the program. Return its folder, with the results of uninterrupted runs, and a function
    that asks it."""
    folder = tmp_path_factory.mktemp("kills")
    (folder / "config.cfg").write_text(CONFIG)
    (folder / "tmp").mkdir()
    program = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("kill_points.py"))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "TMPDIR": str(folder / "tmp")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(number, name, output):
        words = WORDS + RUNNERS[name] + (["-o", output, "--resume"] if output else ["--no-output"])
        program.stdin.write(json.dumps([number, *words]) + "\n")
        program.stdin.flush()
        return json.loads(program.stdout.readline())

    yield folder, ask
    program.communicate()


@pytest.fixture(scope="module")
def points(runs):
    """Return a function that gives the points of an uninterrupted run of a runner. The run's folder
    has the runner's name."""
    known = {}

    def points_of(name):
        if name not in known:
            code, known[name] = runs[1](0, name, name)
            assert code == 0
        return known[name]

    return points_of


def chosen(points, share):
    """Choose one point in `share` (other points for another seed), because each killed run starts
    two processes, twice. Add the points around files that are in no model or checkpoint."""
    picked = set(range(1 + SEED % share, len(points) + 1, max(1, share // TIMES)))
    return sorted(picked | {at for at, name in enumerate(points, 1) if name == "after a process"})


@pytest.mark.slow
@pytest.mark.parametrize("name, share", [("alone", 96), ("thread", 160), ("process", 288)])
def test_kills_at_any_point_leave_nothing_and_the_run_resumes(runs, points, name, share):
    folder, ask = runs
    expected = remains(folder / name) if points(name) and name == "alone" else None
    for number in chosen(points(name), share):
        out = folder / f"{name}-{share}-{number}"
        came = ask(number, name, out.name)
        where = f"point {number}: {points(name)[number - 1]}"
        assert came["status"] == -9 and came["seconds"] < MOST_SECONDS, where
        assert "Traceback" not in came["shown"], where
        assert came["again"] == 0, where
        assert list((folder / "tmp").iterdir()) == [], where
        assert not list(out.glob("**/.*")), where
        if expected is not None:
            same(remains(out), expected)


@pytest.mark.slow
def test_kills_of_a_run_that_saves_nothing_leave_nothing_after_the_next(runs):
    folder, ask = runs
    _, passed = ask(0, "process", "")
    came = ask(passed.index("after a process") + 1, "process", "")
    assert came["status"] == -9 and came["again"] == 0 and came["seconds"] < MOST_SECONDS
    assert list((folder / "tmp").iterdir()) == []
