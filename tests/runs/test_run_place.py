"""A run that replaces another one keeps all of the old run until the new one is sure to succeed."""

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
from thincdialog.api import DataError, OutputError, TrainingError, load, registry, results
from thincdialog.cli.main import main
from thincdialog.runs import run_place
from thincdialog.runs.run_log import is_running
from thincdialog.runs.run_place import RunPlace

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
        ("train", True, True), ("dev", False, True), ("test", False, True),
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
            SEEN.append(load("out/model-best").respond("i want train 1"))
            SEEN.append(results(["out"])[0].stopped_because)

    return look


SEEN = []


def test_readers_see_the_old_run_until_the_new_one_is_sure(folder):
    SEEN.clear()
    before, said = files("out"), load("out/model-best").respond("i want train 1")
    replace(training__callbacks__look={"@callbacks": "tests.looking.v1"})
    (step, running, during), reply, ended, (_, _, learned), (_, still, after), *_ = SEEN
    assert (step, running, still) == (0, True, True) and not is_running(Path("out"))
    for seen in (during, learned):
        assert {name: seen[name] for name in before} == before
    assert reply == said and ended == "max_steps = 4 reached"
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
    before = files("out")
    replace(training__callbacks__look={"@callbacks": "tests.looking.v1"}, **NEVER)
    during = SEEN[-1][2]
    assert {name: during[name] for name in before} == before
    assert files("out")["scores.json"] != before["scores.json"]
    assert not list(Path("out").glob("checkpoint-*"))


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


def test_a_swap_that_is_killed_at_any_moment_is_finished(trained, tmp_path, monkeypatch):
    """After recovery, one of the runs is complete."""
    new = files(trained / "out")
    new.pop("notes.txt")
    new.pop("wandb.id")
    new["checkpoint-99/checkpoint.json"] = new["log.jsonl"] = b"new"
    renamed = (Path.rename, Path.replace, shutil.rmtree)

    def dies_after(n_moves):
        left = [n_moves]

        def dying(function):
            def call(*arguments, **named):
                if left[0] == 0:
                    raise Killed
                left[0] -= 1
                return function(*arguments, **named)

            return call

        return [dying(function) for function in renamed]

    ends = []
    for n_moves in range(100):
        out = tmp_path / str(n_moves)
        shutil.copytree(trained / "out", out)
        before = files(out)
        place = RunPlace(out)
        place.begin_again()
        for name, content in new.items():
            (place.path / name).parent.mkdir(exist_ok=True)
            (place.path / name).write_bytes(content)
        with monkeypatch.context() as patch:
            rename, swap, rmtree = dies_after(n_moves)
            patch.setattr(Path, "rename", rename)
            patch.setattr(Path, "replace", swap)
            patch.setattr(run_place.shutil, "rmtree", rmtree)
            try:
                place.take_over()
                ends.append("done")
            except Killed:
                ends.append("killed")
        RunPlace(out).repair()
        found = files(out)
        assert found == (before if n_moves == 0 else {**new, "notes.txt": b"mine"}), n_moves
        RunPlace(out).repair()
        assert files(out) == found
        if ends[-1] == "done":
            break
    assert len(ends) > 10 and ends[-1] == "done"


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
    while not list(Path("out").glob(".thincdialog-new/model-last")) and process.poll() is None:
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()
    after = files("out")
    assert {name: after[name] for name in before} == before
    assert load("out/model-best").respond("i want train 1")
    _, shown = quietly_train("c.cfg", Path("out"), resume=True, training__max_steps=6)
    assert "Resuming from out/checkpoint-4" in shown
    assert not list(Path("out").glob(".*"))
