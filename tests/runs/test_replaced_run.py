"""A run that replaces another one keeps all of the old run until it has trained."""

import io
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.processes import limited, start
from tests.training.examples import REPLIES, TALKS, quietly_train, with_agent, write_talks
from thincdialog.api import DataError, OutputError, TrainingError, registry, results
from thincdialog.cli.main import main
from thincdialog.runs.checkpoints import Checkpoints
from thincdialog.runs.replaced_run import delete_replaced, move_away, move_back
from thincdialog.runs.run_log import is_running

CONFIG = f"""{TALKS}label_speaker = "second"
{with_agent(REPLIES, "history_size = 1")}
[training]
max_steps = 4
n_samples = 1
"""
NEVER = {
    "training__checkpoint_every_steps": 0, "training__checkpoint_every_seconds": 0,
    "training__checkpoint_evaluations": False,
}  # fmt: skip


def write(path, prefix, n=24):
    pairs = [(f"i want {prefix} {k % 4}", f"one {prefix} {k % 4}") for k in range(n)]
    write_talks(path, pairs, prefix)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder with data and with its run ``out``."""
    folder = tmp_path_factory.mktemp("place")
    for split in ("train", "dev", "test"):
        write(folder / f"{split}.jsonl", split)
    (folder / "c.cfg").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        quietly_train("c.cfg", Path("out"))
    (folder / "out" / "notes.txt").write_text("mine")
    (folder / "out" / "wandb.id").write_text("abc\n")
    return folder


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    """Return a copy of the folder. It is the current directory of a test."""
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def files(folder):
    """Return every file in the folder with its bytes."""
    paths = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def replace(**more):
    return quietly_train("c.cfg", Path("out"), force=True, system__seed=7, **more)


@pytest.mark.parametrize(
    "split, resume, streaming",
    [
        ("train", False, False), ("dev", False, False), ("test", True, False),
        ("train", True, True), ("dev", False, True),
    ],
)  # fmt: skip
def test_a_damaged_line_leaves_the_old_run_as_it_was(folder, split, resume, streaming):
    if resume:  # Without a checkpoint it starts from scratch.
        for path in Path("out").glob("checkpoint-*"):
            shutil.rmtree(path)
    with open(f"{split}.jsonl", "a") as file:
        file.write('{"id": "x", "turns": [{"speaker"\n')
    before = files("out")
    with pytest.raises(DataError, match=f"{split}.jsonl:25 "):
        replace(resume=resume, tasks__talk__streaming=streaming)
    assert files("out") == before
    # In a new folder the damage is found before training, too, and nothing is written.
    if not streaming:
        with pytest.raises(DataError, match=f"{split}.jsonl:25 "):
            quietly_train("c.cfg", Path("new"))
        assert not Path("new").exists()


def test_an_error_in_a_streamed_test_split_comes_late_as_announced(folder):
    with open("test.jsonl", "a") as file:
        file.write('{"id": "x", "turns": [{"speaker": "a", "text": "?"}, {"speaker": "B"}]}\n')
    shown = io.StringIO()
    with pytest.raises(DataError, match="test.jsonl:25 "):
        quietly_train("c.cfg", Path("new"), tasks__talk__streaming=True, stderr=shown)
    lines = shown.getvalue().splitlines()
    note = "test is a stream, which is read only after training; to check it now, run `debug data`."
    (number,) = (number for number, line in enumerate(lines) if line.startswith(note))
    assert any(line.startswith("Computing with") for line in lines[number:])


def test_a_new_run_replaces_all_of_the_old_one(folder):
    old = files("out")
    quietly_train("c.cfg", Path("other"), system__seed=7)
    replace()
    expected, found = files("other"), files("out")
    assert set(found) == {*expected, "notes.txt"} and found["notes.txt"] == b"mine"
    for name in ("model-best/weights.npy", "model-last/weights.npy"):
        assert found[name] == expected[name] != old[name]
    rows = [json.loads(line) for line in found["log.jsonl"].splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    _, shown = quietly_train(
        "c.cfg", Path("out"), resume=True, system__seed=7, training__max_steps=6
    )
    assert f"Resuming from {Path('out/checkpoint-4')}" in shown


@registry.callbacks("tests.looking.v1")
def looking():
    def look(info, agent):
        SEEN.append((info["step"], is_running(Path("out")), files("out")))
        if info["step"] == 0:
            with pytest.raises(OutputError, match="still in progress"):
                replace()
            assert [run.name for run in results(["."])] == ["out"]

    return look


SEEN = []


def moved(before):
    """Return the files of the old run as they are named while a new run begins."""
    return {f".replaced/{name}": text for name, text in before.items() if name != "notes.txt"}


def test_the_old_run_is_kept_until_the_new_one_has_trained(folder):
    SEEN.clear()
    before = files("out")
    replace(training__callbacks__look={"@callbacks": "tests.looking.v1"})
    (step, running, during), (_, _, learned), (_, still, after), *_ = SEEN
    assert (step, running, still) == (0, True, True) and not is_running(Path("out"))
    for seen in (during, learned):
        assert {name: seen[name] for name in moved(before)} == moved(before)
    # The first checkpoint of a step was written in between.
    assert "scores.json" not in after and after["config.cfg"] != before["config.cfg"]
    assert not any(name.startswith(".") for name in after)


def test_a_run_that_fails_at_its_first_steps_leaves_the_old_one_as_it_was(folder):
    before = files("out")
    with pytest.raises(TrainingError, match="not finite"):
        replace(training__optimizer__learn_rate=1e30, training__eval_every_epochs=3.0)
    assert files("out") == before


def test_a_full_disk_leaves_the_old_run_as_it_was(folder):
    before = files("out")
    for most in (0, 1_000, 20_000):
        with limited("RLIMIT_FSIZE", most), pytest.raises(OutputError, match="written"):
            replace(agent__model__encoder__width=200)
        assert files("out") == before


def test_without_checkpoints_the_old_run_stays_to_the_end(folder):
    SEEN.clear()
    before = moved(files("out"))
    replace(training__callbacks__look={"@callbacks": "tests.looking.v1"}, **NEVER)
    during = SEEN[-1][2]
    assert {name: during[name] for name in before} == before
    assert files("out")["scores.json"] != before[".replaced/scores.json"]
    assert not list(Path("out").glob("checkpoint-*"))


def test_a_model_without_a_checkpoint_outlives_a_run_that_saved_nothing(folder):
    """Only a config and an empty log remain of a run that was killed before it saved a model. They
    are not an old run, which would replace the model of the next run if that is killed."""
    out = Path("out")
    shutil.rmtree(out)
    out.mkdir()
    (out / "config.cfg").write_text("[paths]\n")
    (out / "log.jsonl").touch()
    SEEN.clear()
    look = {"training__callbacks__look": {"@callbacks": "tests.looking.v1"}}
    quietly_train("c.cfg", out, resume=True, **look, **NEVER)
    assert SEEN and not any(".replaced" in name for _, _, found in SEEN for name in found)
    before = files(out)
    with pytest.raises(OutputError, match="holds model-best, but no checkpoint to resume from"):
        quietly_train("c.cfg", out, resume=True, **NEVER)
    assert files(out) == before


@registry.callbacks("tests.stopping.v1")
def stopping(at: int):
    return lambda info, agent: os.kill(os.getpid(), signal.SIGINT) if info["step"] == at else None


@pytest.mark.parametrize("settings", [{}, NEVER])
def test_a_signal_keeps_the_trained_model(folder, settings):
    before = files("out")
    block = {"@callbacks": "tests.stopping.v1", "at": 2}
    with pytest.raises(KeyboardInterrupt) as interrupt:
        replace(training__callbacks__it=block, training__eval_every_steps=2, **settings)
    assert str(interrupt.value) == "out/checkpoint-2"
    assert json.loads(Path("out/model-last/meta.json").read_text())["step"] == 2
    assert "scores.json" not in files("out") and files("out").keys() != before.keys()


@registry.mutators("tests.interrupting.v1")
def interrupting():
    def interrupt(episodes):
        os.kill(os.getpid(), signal.SIGTERM)
        yield from episodes

    return interrupt


def test_a_signal_before_training_keeps_the_old_run(folder, capsys):
    before = files("out")
    Path("code.py").write_text("")
    Path("stop.cfg").write_text(
        f'{CONFIG}\n[tasks.talk.mutators.*.it]\n@mutators = "tests.interrupting.v1"\n'
    )
    assert main("train stop.cfg -o out --force --code code.py".split()) == 143
    assert files("out") == before
    assert capsys.readouterr().err.endswith(
        "Interrupted before there was anything to save; earlier files are unchanged. Start "
        "again with: python -m thincdialog train stop.cfg --output out --force --code code.py\n"
    )


# --- killed -----------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def begin(out):
    """Begin a new run, and write some of its files."""
    move_away(out)
    (out / "log.jsonl").write_text("new")
    shutil.copytree(out / ".replaced" / "model-best", out / "model-best")
    (out / "model-best" / "weights.npy").write_text("new")
    (out / "checkpoint-4").mkdir()
    (out / "checkpoint-4" / "checkpoint.json").write_text("new")


@pytest.mark.parametrize("end", [move_back, delete_replaced])
def test_one_of_the_runs_is_whole_if_a_process_is_killed_at_any_moment(
    trained, tmp_path, monkeypatch, end
):
    left = [0]

    def dying(function):
        def call(*arguments, **named):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return function(*arguments, **named)

        return call

    ends = []
    for n_moves in range(100):
        out = tmp_path / str(n_moves)
        shutil.copytree(trained / "out", out)
        before = files(out)
        with monkeypatch.context() as patch:
            for place, name in ((Path, "rename"), (Path, "mkdir"), (Path, "unlink"),
                                (shutil, "rmtree"), (shutil, "copyfile")):  # fmt: skip
                patch.setattr(place, name, dying(getattr(place, name)))
            left[0] = n_moves
            try:
                begin(out)
                ends.append("begun")
                end(out)
                ends.append("done")
            except Killed:
                ends.append("killed")
        new = before
        if ends[-2:-1] == ["begun"] and end is delete_replaced:
            if not (out / ".replaced").exists():
                new = {name: text for name, text in files(out).items() if name[0] != "."}
                assert new["log.jsonl"] == new["model-best/weights.npy"] == b"new"
        move_back(out)
        Checkpoints(out).repair(".replaced")
        assert files(out) == new, n_moves
        if ends[-1] == "done":
            break
    assert ends.count("killed") > 10 and (new == before) == (end is move_back)


@pytest.mark.slow
def test_a_killed_process_leaves_the_old_run(folder):
    (folder / "wait.py").write_text(
        "import time\nfrom thincdialog.api import registry\n\n"
        '@registry.callbacks("tests.waiting.v1")\ndef waiting():\n'
        "    return lambda info, agent: time.sleep(600)\n"
    )
    before = files("out")
    block = '\n[training.callbacks.wait]\n@callbacks = "tests.waiting.v1"\n'
    (folder / "wait.cfg").write_text(CONFIG + block)
    process = start(folder, *"train wait.cfg -o out --force --code wait.py".split())
    while not (Path("out/model-last").exists() and Path("out/.replaced").exists()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    # The next run in the folder moves the old run back.
    _, shown = quietly_train("c.cfg", Path("out"), resume=True)
    assert "killed before its first checkpoint: the old run is back." in shown
    assert "Resuming from out/checkpoint-4" in shown
    for name in ("model-best/weights.npy", "model-last/weights.npy"):
        assert files("out")[name] == before[name]
    assert not list(Path("out").glob(".*"))
