"""Folders that are full, read-only, missing, or contain something else."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.processes import limited
from tests.runners.resuming import remains
from tests.runs.conftest import ENDS
from tests.training.examples import RANKER, quietly_train
from thincdialog.api import (
    ConfigError,
    MissingPackageError,
    ModelError,
    OutputError,
    TrainingError,
    load,
    registry,
)
from thincdialog.files.saved_model import BEST
from thincdialog.runs.checkpoints import Checkpoints, damage
from thincdialog.runs.output_folder import taken_back

WIDE = RANKER.replace("width = 16", "width = 128")
ON = {**ENDS, "training__max_steps": 9}


def test_a_folder_that_is_not_empty_needs_force_which_replaces_models_only(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty.*--force"):
        quietly_train(output=tmp_path)
    quietly_train(output=tmp_path, force=True, training__max_steps=1)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / BEST / "weights.npy").is_file()
    other = tmp_path / "other" / BEST
    other.mkdir(parents=True)
    for path in (other / "notes.txt", tmp_path / "third" / BEST):
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        with pytest.raises(OutputError, match="model-best  is not a saved model"):
            quietly_train(output=tmp_path / path.relative_to(tmp_path).parts[0], force=True)
        assert path.read_text() == "mine"


def test_a_config_found_wrong_with_the_data_leaves_the_folder_as_it_was(tmp_path):
    """The score is only known after the first evaluation."""
    for folder in (tmp_path / "new", tmp_path):
        with pytest.raises(ConfigError, match="is not measured"):
            quietly_train(output=folder, training__score="xyz")
    assert list(tmp_path.iterdir()) == []
    quietly_train(output=tmp_path, training__max_steps=1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError):
        quietly_train(output=tmp_path, training__score="xyz", resume=True)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "error, is_left",
    [
        (MissingPackageError("numba", "fast", "[agent]"), False),
        (ModelError("the weights do not fit"), False),
        (OutputError("another run is writing into it"), True),
        (TrainingError("the loss is not finite"), True),
    ],
)
def test_an_error_before_training_leaves_no_folder(tmp_path, error, is_left):
    folder = tmp_path / "out"
    with pytest.raises(type(error)), taken_back(folder):
        folder.mkdir()
        (folder / "config.cfg").write_text("[paths]")
        raise error
    assert folder.exists() == is_left


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path):
    """No file may be larger than 200 kB, but the weights are."""
    folder = tmp_path / "out"
    quietly_train(WIDE, folder, **ENDS)
    before = remains(folder)
    with limited("RLIMIT_FSIZE", 200_000):
        with pytest.raises(OutputError, match="/checkpoint-8  could not be written: .*--output"):
            quietly_train(WIDE, folder, resume=True, **ON)
    assert Checkpoints(folder).steps() == [4, 6] and damage(folder / "checkpoint-6") == ""
    assert not list(folder.glob(".*"))
    for name in ("model-best/weights.npy", "model-last/weights.npy"):
        assert (folder / name).read_bytes() == before[name]
    assert load(folder / "model-best").respond("Good morning!")
    quietly_train(WIDE, folder, resume=True, **ON)


@registry.callbacks("tests.vanishing.v1")
def vanishing(path: str):
    return lambda info, agent: shutil.rmtree(path) if info["step"] == 4 else None


def test_a_folder_that_vanishes(tmp_path):
    text = RANKER.replace("max_epochs", "eval_every_steps = 2\nmax_epochs")
    block = {"@callbacks": "tests.vanishing.v1", "path": str(tmp_path / "out")}
    with pytest.raises(OutputError, match="/checkpoint-4  could not be written: No such file"):
        quietly_train(text, tmp_path / "out", training__callbacks__it=block)


CODE = """
import os
from thincdialog.api import registry

@registry.callbacks("tests.trouble.v1")
def trouble():
    return lambda info, agent: os.chmod({out!r}, 0o555) if info["step"] == 4 else None
"""
# Root can write anywhere, unless it drops this capability.
AS_A_USER = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []


@pytest.mark.slow
@pytest.mark.skipif(bool(AS_A_USER) and not shutil.which("setpriv"), reason="root without setpriv")
def test_a_folder_that_becomes_read_only(tmp_path):
    out, code, config = tmp_path / "out", tmp_path / "code.py", tmp_path / "config.cfg"
    code.write_text(CODE.format(out=str(out)))
    block = '\n[training.callbacks.trouble]\n@callbacks = "tests.trouble.v1"\n'
    config.write_text(RANKER.replace("max_epochs", "eval_every_steps = 2\nmax_epochs") + block)
    train = [sys.executable, "-m", "thincdialog", "train", str(config), "--code", str(code)]
    for more, said in (
        ([], f"{out}/checkpoint-4  could not be written: Permission denied"),
        (["--resume"], f"{out}  cannot be written: Permission denied."),
    ):
        env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
        command = [*AS_A_USER, *train, "-o", str(out), *more]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert said in done.stderr and "--output" in done.stderr
    out.chmod(0o755)
    assert damage(out / "checkpoint-2") == ""
