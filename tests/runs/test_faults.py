"""Disks that are full, folders that are read-only or gone, checkpoints that are damaged."""

import io
import json
import os
import resource
import shutil
import subprocess
import sys

import pytest

from tests.runners.resuming import Crash, remains, same
from tests.training.examples import RANKER
from thincdialog.api import (
    ConfigError,
    DataError,
    MissingPackageError,
    ModelError,
    OutputError,
    load,
    train,
)
from thincdialog.runs.changes import N_PIECES, PIECE, _fingerprint
from thincdialog.runs.checkpoints import Checkpoints, damage
from thincdialog.runs.output_folder import taken_back

ENDS = {"training.max_steps": 6, "training.checkpoint_every_steps": 2}


def run(output, resume=False, text=RANKER, force=False, **overrides):
    stderr = io.StringIO()
    changes = {**ENDS, **{name.replace("__", "."): value for name, value in overrides.items()}}
    result = train(
        text,
        output=output,
        resume=resume,
        force=force,
        overrides=changes,
        stdout=io.StringIO(),
        stderr=stderr,
    )
    return result, stderr.getvalue()


def command(output, *more, limit=None, text=RANKER):
    """Train in a process of its own; RETURNS its exit code and what stderr shows."""
    config = output.parent.parent / "config.cfg"
    config.write_text(text)
    changes = [f"--{name}={value}" for name, value in ENDS.items()]
    done = subprocess.run(
        [sys.executable, "-m", "thincdialog", "train", str(config), "-o", str(output), *changes]
        + list(more),
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    return done.returncode, done.stderr


def flip(path, at=-20):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "truncated": lambda folder: os.truncate(folder / "weights.npy", 5000),
    "a bit flipped": lambda folder: flip(folder / "optimizer" / "mom2-0-parameters.npy"),
    "a bit of the state flipped": lambda folder: flip(folder / "state.json", 500),
    "a file missing": lambda folder: (folder / "agent.json").unlink(),
    "list missing": lambda folder: (folder / "checkpoint.json").unlink(),
    "list truncated": lambda folder: os.truncate(folder / "checkpoint.json", 100),
    "a bit of the list flipped": lambda folder: flip(folder / "checkpoint.json", 40),
    "empty": lambda folder: [path.unlink() for path in folder.glob("*.*")],
    "another's": lambda folder: (
        shutil.rmtree(folder),
        shutil.copytree(folder.with_name("checkpoint-4"), folder),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_faults_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path, name):
    folder = tmp_path / "out"
    run(folder)
    expected = remains(folder)
    newest = folder / "checkpoint-6"
    DAMAGES[name](newest)
    _, shown = run(folder, resume=True)
    assert f"{newest} is damaged: " in shown
    assert f"Going on from {folder / 'checkpoint-4'}." in shown
    same(remains(folder), expected)
    assert damage(newest) == "" and Checkpoints(folder).steps() == [4, 6]


def test_faults_one_damaged_file_of_best_weights_is_not_the_end(tmp_path):
    """Model and checkpoints have the same best weights, each in a file of its own."""
    folder = tmp_path / "out"
    run(folder)
    expected = remains(folder)
    flip(folder / "model-best" / "weights.npy")
    flip(folder / "checkpoint-6" / "best.npy")
    _, shown = run(folder, resume=True)
    assert "checkpoint-6 is damaged: best.npy has another checksum" in shown
    assert f"Going on from {folder / 'checkpoint-4'}." in shown
    same(remains(folder), expected)


def test_faults_what_was_half_done_when_the_process_died_is_mended(tmp_path):
    """Between two renames, a checkpoint or a model bears another name."""
    folder = tmp_path / "out"
    run(folder)
    expected = remains(folder)
    for name in ("checkpoint-6", "checkpoint-4", "model-best", "model-last"):
        (folder / name).rename(folder / f".{name}.old.0123abcd")
    (folder / ".checkpoint-8.0123abcd").mkdir()
    (folder / ".notes.0123abcd").mkdir()
    for name in ("config.cfg", "scores.json", "notes.txt"):
        (folder / f".{name}.0123abcd").write_text("half")
    _, shown = run(folder, resume=True)
    assert f"Going on from {folder / 'checkpoint-6'}." in shown
    same(remains(folder), expected)
    left = sorted(path.name for path in folder.glob(".*"))
    assert left == [".notes.0123abcd", ".notes.txt.0123abcd"]


def test_faults_killed_while_old_checkpoints_are_taken_away(tmp_path, monkeypatch):
    """Whatever files are left of one, it is not in the way of going on."""
    run(tmp_path / "whole")
    expected, unlink = remains(tmp_path / "whole"), os.unlink
    for n_files in range(1, 12, 2):
        folder, left = tmp_path / str(n_files), [n_files]

        def dying(path, *, dir_fd=None, left=left):
            left[0] -= dir_fd is not None
            if left[0] < 0:
                raise Crash
            unlink(path, dir_fd=dir_fd)

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", dying)
            with pytest.raises(Crash):
                run(folder)
        _, shown = run(folder, resume=True)
        assert "Going on from" in shown
        same(remains(folder), expected)
        assert not list(folder.glob(".*"))


def test_faults_a_better_model_of_a_lost_future_is_forgotten(tmp_path):
    folder = tmp_path / "out"
    run(folder)
    expected = remains(folder)
    shutil.rmtree(folder / "model-best")
    shutil.copytree(folder / "model-last", folder / "model-best")
    flip(folder / "model-best" / "weights.npy")
    run(folder, resume=True)
    same(remains(folder), expected)


def test_faults_every_flipped_bit_of_a_checkpoint_is_found(tmp_path):
    run(tmp_path, training__max_steps=2)
    folder = tmp_path / "checkpoint-2"
    assert damage(folder) == ""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        before = path.read_bytes()
        # Of the list of checksums, those bits that matter to someone.
        for at in {0, len(before) // 3, len(before) // 2, len(before) - 2}:
            flip(path, at)
            assert damage(folder), f"{path.name} {at}"
            path.write_bytes(before)


def test_faults_no_whole_checkpoint_is_never_a_silent_restart(tmp_path):
    folder = tmp_path / "out"
    run(folder)
    before = remains(folder)["model-last/weights.npy"]
    for step in (4, 6):
        flip(folder / f"checkpoint-{step}" / "weights.npy")
    with pytest.raises(ModelError, match="no whole checkpoint .*-6 is damaged: .*-4 is damaged: "):
        run(folder, resume=True)
    assert (folder / "model-last" / "weights.npy").read_bytes() == before


def test_faults_a_folder_without_checkpoints(tmp_path):
    folder = tmp_path / "out"
    _, shown = run(folder, resume=True)
    assert f"There is no checkpoint in {folder}: starting afresh." in shown
    for step in Checkpoints(folder).steps():
        shutil.rmtree(folder / f"checkpoint-{step}")
    with pytest.raises(OutputError, match="holds model-best, but no checkpoint.*--force"):
        run(folder, resume=True)
    _, shown = run(folder, resume=True, force=True)
    assert "starting afresh" in shown
    with pytest.raises(OutputError, match="--resume goes on with a run: .*--output"):
        run(None, resume=True)


def test_faults_a_missing_package_leaves_no_folder(tmp_path):
    folder = tmp_path / "out"
    with pytest.raises(MissingPackageError), taken_back(folder):
        folder.mkdir()
        (folder / "config.cfg").write_text("[paths]")
        raise MissingPackageError("numba", "fast", "[agent]")
    assert not folder.exists()


def test_faults_force_takes_away_what_a_killed_run_left_half_done(tmp_path):
    run(tmp_path)
    for name in (".checkpoint-8.0123abcd", ".model-best.0123abcd", ".notes.0123abcd"):
        (tmp_path / name).mkdir()
    run(tmp_path, force=True)
    assert [path.name for path in tmp_path.glob(".*")] == [".notes.0123abcd"]


def test_faults_force_forgets_the_run_before(tmp_path):
    run(tmp_path)
    run(tmp_path, force=True, system__seed=5, training__max_steps=2)
    assert Checkpoints(tmp_path).steps() == [0, 2]
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 2


def test_faults_checkpoints_of_other_programs_are_left_alone(tmp_path):
    other = tmp_path / "checkpoint-6"
    other.mkdir()
    (other / "pytorch_model.bin").write_text("mine")
    for force in (False, True):
        with pytest.raises(OutputError, match="checkpoint-6  is no checkpoint of ours"):
            run(tmp_path, resume=not force, force=force)
    assert (other / "pytorch_model.bin").read_text() == "mine"


def test_faults_checkpoints_that_nobody_wants(tmp_path):
    run(
        tmp_path,
        training__checkpoint_every_steps=0,
        training__checkpoint_every_seconds=0,
        training__checkpoint_evaluations=False,
    )
    assert Checkpoints(tmp_path).steps() == []


# --- the end of a run, and other settings -----------------------------------------------


def test_faults_resumed_behind_its_end_a_run_says_so_and_shows_the_result(tmp_path):
    before, _ = run(tmp_path)
    left = remains(tmp_path)
    after, shown = run(tmp_path, resume=True)
    assert "The run had ended (max_steps = 6 reached)" in shown
    assert (after.scores, after.best_step) == (before.scores, before.best_step)
    assert after.stopped_because == before.stopped_because
    assert after.samples == before.samples
    same(remains(tmp_path), left)


def test_faults_a_run_goes_on_behind_its_end_with_higher_limits(tmp_path):
    every = {"training__eval_every_steps": 2}
    run(tmp_path / "at once", training__max_steps=10, **every)
    run(tmp_path / "out", **every)
    _, shown = run(tmp_path / "out", resume=True, training__max_steps=10, **every)
    assert "Changed since: training.max_steps 6 -> 10." in shown
    found, expected = remains(tmp_path / "out"), remains(tmp_path / "at once")
    for name in ("model-best/weights.npy", "model-last/weights.npy"):
        assert found[name] == expected[name]
    steps = [row["step"] for row in found["rows"]]
    assert steps == [0, 2, 4, 6, 8, 10]


def test_faults_harmful_changes_are_refused_by_name_with_both_values(tmp_path):
    run(tmp_path)
    harmful = {
        "system.seed": 4,
        "world.batcher.size": 8,
        "training.optimizer.learn_rate": 0.5,
        "training.accumulate_gradient": 2,
        "agent.model.encoder.width": 8,
        "tasks.coffee.n_train": 30,
        "mixture.unit": "words",
        "training.score": "accuracy",
        # Scores before and after would be of other questions.
        "evaluation.max_examples": 5,
        "evaluation.n_candidates": 7,
        "evaluation.metrics.accuracy.normalize": False,
    }
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, resume=True, **harmful)
    assert len(caught.value.problems) == len(harmful)
    assert (
        f"[training.optimizer] learn_rate = 0.5, but {tmp_path / 'checkpoint-6'} has 0.01"
        in str(caught.value)
    )
    harmless = {
        "training.patience": 3,
        "evaluation.world.batcher.size": 7,
        "training.eval_every_epochs": 0.5,
        "training.n_samples": 0,
        "training.checkpoint_every_steps": 3,
    }
    metrics = {"accuracy": "Accuracy", "f1": "F1", "ranking": "Ranking", "new": "DistinctN"}
    added = RANKER + "".join(
        f'\n[evaluation.metrics.{name}]\n@metrics = "thincdialog.{function}.v1"\n'
        for name, function in metrics.items()
    )
    _, shown = run(tmp_path, resume=True, text=added, training__max_steps=8, **harmless)
    assert all(name in shown for name in [*harmless, "evaluation.metrics.new.@metrics"])


TEXT = RANKER.replace(
    RANKER[RANKER.index("[tasks.coffee]") : RANKER.index("[tokenizer]")],
    '[tasks.it]\n@teachers = "thincdialog.LabelledText.v1"\ntrain = ${paths.train}\n\n',
).replace('candidates = "inline"', 'candidates = "batch"')


def test_faults_other_data_under_the_same_path_is_refused(tmp_path):
    data, elsewhere = tmp_path / "train.jsonl", tmp_path / "moved.jsonl"
    lines = [json.dumps({"text": f"a {n}", "label": f"b {n % 7}"}) for n in range(90)]
    data.write_text("\n".join(lines))
    folder = tmp_path / "out"
    run(folder, text=TEXT, paths__train=str(data))
    data.write_text("\n".join(lines).replace("a 7", "a 8"))
    again = {"text": TEXT, "resume": True, "training__max_steps": 8}
    with pytest.raises(DataError, match="train.jsonl  is not the file that .*checkpoint-6 was"):
        run(folder, paths__train=str(data), **again)
    elsewhere.write_text("\n".join(lines))
    _, shown = run(folder, paths__train=str(elsewhere), **again)
    assert "Going on" in shown and "paths.train" in shown


def test_faults_a_large_file_is_known_by_pieces(tmp_path):
    path = tmp_path / "large"
    for size in (0, 1, PIECE, PIECE + 1, N_PIECES * PIECE, N_PIECES * PIECE + 5, 9_000_000):
        path.write_bytes(bytes(size))
        before = _fingerprint(str(path))
        places = {0, size // 2 if size <= N_PIECES * PIECE else 0, size - 1}
        for at in places if size else ():
            flip(path, at)
            assert _fingerprint(str(path)) != before
            flip(path, at)
        assert _fingerprint(str(path)) == before
        path.write_bytes(bytes(size + 1))
        assert _fingerprint(str(path)) != before


# --- disks and folders --------------------------------------------------------------------


def test_faults_full_disk_keeps_the_last_checkpoint(tmp_path):
    """No file may be larger than 200 kB: the weights are."""
    folder = tmp_path / "out"
    text = RANKER.replace("width = 16", "width = 128")
    assert command(folder, text=text)[0] == 0
    before = remains(folder)
    code, shown = command(
        folder,
        "--resume",
        "--training.max_steps=9",
        text=text,
        limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
    )
    assert code == 1 and "Traceback" not in shown
    assert f"{folder}/checkpoint-8  could not be written: " in shown and "--output" in shown
    assert Checkpoints(folder).steps() == [4, 6] and damage(folder / "checkpoint-6") == ""
    assert not list(folder.glob(".*"))
    for name in ("model-best/weights.npy", "model-last/weights.npy"):
        assert (folder / name).read_bytes() == before[name]
    assert load(folder / "model-best").respond("Good morning!")
    assert command(folder, "--resume", "--training.max_steps=9", text=text)[0] == 0


@pytest.fixture
def disk(tmp_path):
    """A disk of its own, of 8 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_faults_a_small_disk_becomes_full(disk):
    text = RANKER.replace("width = 16", "width = 128")
    assert command(disk / "out", text=text)[0] == 0
    free = shutil.disk_usage(disk).free
    (disk / "filler").write_bytes(bytes(free - 100_000))
    code, shown = command(disk / "out", "--resume", "--training.max_steps=9", text=text)
    assert code == 1 and "Traceback" not in shown
    assert f"{disk}/out/checkpoint-8  could not be written: " in shown
    assert damage(disk / "out" / "checkpoint-6") == ""
    (disk / "filler").unlink()
    assert command(disk / "out", "--resume", "--training.max_steps=9", text=text)[0] == 0
    assert Checkpoints(disk / "out").steps() == [8, 9]


CODE = """
import shutil, subprocess
from thincdialog.api import registry

@registry.callbacks("tests.trouble.v1")
def trouble():
    def callback(info, agent):
        if info["step"] == 4:
            {action}
    return callback
"""
TROUBLE = """
[training.callbacks.trouble]
@callbacks = "tests.trouble.v1"
"""


# Root may write anywhere, unless it gives up this right.
AS_A_USER = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []


@pytest.mark.skipif(bool(AS_A_USER) and not shutil.which("setpriv"), reason="root without setpriv")
@pytest.mark.parametrize(
    "action, reason",
    [
        ("shutil.rmtree('{out}')", "No such file"),
        ("__import__('os').chmod('{out}', 0o555)", "Permission denied"),
    ],
)
def test_faults_the_folder_vanishes_or_becomes_read_only(tmp_path, action, reason):
    out, code = tmp_path / "out", tmp_path / "code.py"
    code.write_text(CODE.format(action=action.format(out=out)))
    config = tmp_path / "config.cfg"
    config.write_text(RANKER.replace("max_epochs", "eval_every_steps = 2\nmax_epochs") + TROUBLE)
    train = [sys.executable, "-m", "thincdialog", "train", str(config), "--code", str(code)]
    for resume in ([], ["--resume"]):
        done = subprocess.run(
            [*AS_A_USER, *train, "-o", str(out), *resume],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and "Traceback" not in done.stderr
        if not resume:
            assert f"{out}/checkpoint-4  could not be written: {reason}" in done.stderr
        else:
            assert f"{out}  cannot be written: Permission denied." in done.stderr
        assert "--output" in done.stderr
        if not out.exists():
            return
    out.chmod(0o755)
    assert damage(out / "checkpoint-2") == ""


def test_faults_a_read_only_disk(disk):
    out = disk / "out"
    assert command(out)[0] == 0
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    code, shown = command(out, "--resume", "--training.max_steps=9")
    assert code == 1 and f"{out}  cannot be written: Read-only file system." in shown
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert command(out, "--resume", "--training.max_steps=9")[0] == 0
