"""Checkpoints that are damaged, missing, or those of another program."""

import json
import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzzing import mangle_bytes
from tests.runners.resuming import remains, same
from tests.runs.conftest import ENDS, resume
from tests.training.examples import quietly_train
from thincdialog.errors import ModelError, OutputError
from thincdialog.runs.checkpoints import FORMAT, Checkpoints, damage


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
    # The model and the checkpoints have the same best weights, each in its own file.
    "best weights, here and there": lambda folder: (
        flip(folder / "best.npy"),
        flip(folder.with_name("model-best") / "weights.npy"),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(trained, folder, name):
    newest = folder / "checkpoint-6"
    DAMAGES[name](newest)
    _, shown = resume(folder)
    assert f"{newest} is damaged: " in shown
    assert f"Resuming from {folder / 'checkpoint-4'}." in shown
    same(remains(folder), remains(trained.output))
    assert damage(newest) == "" and Checkpoints(folder).steps() == [4, 6]


@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
@pytest.mark.slow
def test_every_damage_to_a_checkpoint_is_found(trained, tmp_path_factory, chance):
    copy = tmp_path_factory.getbasetemp() / "checkpoint-6"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(trained.output / copy.name, copy)
    assert damage(copy) == ""
    path = chance.choice(sorted(path for path in copy.rglob("*") if path.is_file()))
    content = path.read_bytes()
    changed = mangle_bytes(content, chance)
    path.write_bytes(changed)
    if path.name != "checkpoint.json":
        assert bool(damage(copy)) == (changed != content)
    else:
        assert isinstance(damage(copy), str)


def test_resume_without_a_whole_checkpoint_is_no_silent_restart(trained, folder):
    for step in (4, 6):
        flip(folder / f"checkpoint-{step}" / "weights.npy")
    with pytest.raises(ModelError, match="no intact checkpoint .*-6 is damaged: .*-4 is damaged: "):
        resume(folder)
    weights = (place / "model-last" / "weights.npy" for place in (trained.output, folder))
    assert next(weights).read_bytes() == next(weights).read_bytes()


@pytest.mark.parametrize("number, age", [(FORMAT - 1, "an earlier"), (FORMAT + 1, "a later")])
def test_checkpoints_of_other_versions_are_refused_in_one_line(folder, number, age):
    for step in (4, 6):
        path = folder / f"checkpoint-{step}" / "checkpoint.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": number}))
    with pytest.raises(ModelError) as refused:
        resume(folder)
    assert str(refused.value) == (
        f"{folder / 'checkpoint-6'}  was written by {age} version of thincdialog: start from "
        "scratch in another --output, or with --force instead of --resume."
    )
    quietly_train(output=folder, force=True, **ENDS)
    assert damage(folder / "checkpoint-6") == ""


def test_a_folder_without_checkpoints(tmp_path):
    folder = tmp_path / "out"
    assert f"There is no checkpoint in {folder}: starting from scratch." in resume(folder)[1]
    for step in Checkpoints(folder).steps():
        shutil.rmtree(folder / f"checkpoint-{step}")
    with pytest.raises(OutputError, match="holds model-best, but no checkpoint.*--force"):
        resume(folder)
    _, shown = quietly_train(output=folder, resume=True, force=True, **ENDS)
    assert "starting from scratch" in shown
    with pytest.raises(OutputError, match="--resume continues a run: .*--output"):
        resume(None)


def test_checkpoints_of_other_programs_are_left_alone(tmp_path):
    other = tmp_path / "checkpoint-6"
    other.mkdir()
    (other / "pytorch_model.bin").write_text("mine")
    for force in (False, True):
        with pytest.raises(OutputError, match="checkpoint-6  is not a checkpoint of thincdialog"):
            quietly_train(output=tmp_path, resume=not force, force=force, **ENDS)
    assert (other / "pytorch_model.bin").read_text() == "mine"


def test_checkpoints_can_be_switched_off(tmp_path):
    never = ("checkpoint_every_steps", "checkpoint_every_seconds", "checkpoint_evaluations")
    settings = {f"training__{name}": False if "eval" in name else 0 for name in never}
    quietly_train(output=tmp_path, training__max_steps=2, **settings)
    assert Checkpoints(tmp_path).steps() == []
