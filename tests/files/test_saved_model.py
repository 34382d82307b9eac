"""A saved model that was damaged is refused by name, or is the model that was saved."""

import json
import random
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.small_config import CONFIG
from tests.fuzzing import mangle, mangle_bytes, within_time
from thincdialog.api import Chatbot, train
from thincdialog.errors import ConfigError, DialogError, ModelError
from thincdialog.runs.checkpoints import Checkpoints, damage

ASKED = ("hi", "a large coffee with milk please", "two teas", "that is all")
# What has checksums.
LEARNT = ("weights.npy", "agent.json", "layout.json")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a short run with a checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    settings = {"training.max_steps": 4, "training.checkpoint_every_steps": 2}
    train(CONFIG, output=folder / "out", overrides=settings)
    return folder / "out"


def replies(folder):
    chatbot = Chatbot(folder)
    return [chatbot.respond(text) for text in ASKED]


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")


def load_damaged(saved, copy, name, damaged, expected):
    """Load a copy of a model in which one file is another."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(saved, copy)
    before = (copy / name).read_bytes()
    (copy / name).write_bytes(damaged)
    try:
        found = replies(copy)
    except (ModelError, ConfigError) as error:
        assert str(copy) in str(error) and len(str(error)) < 20_000
    except DialogError as error:
        # A config that names other data, and no other mistake.
        assert name == "config.cfg" and "\n" not in str(error)
    else:
        if name in LEARNT and damaged != before:
            assert found == expected


chances = st.one_of(st.randoms(use_true_random=False), st.integers(0).map(random.Random))


def try_damage(run, folder, chance):
    saved = run / "model-best"
    name = chance.choice([path.relative_to(saved).as_posix() for path in files_of(saved)])
    content = (saved / name).read_bytes()
    damaged = chance.choice([mangle, mangle_bytes])(content, chance)
    expected = replies(saved)
    within_time(lambda: load_damaged(saved, folder / "copy", name, damaged, expected))


@settings(max_examples=80)
@given(chances)
def test_damaged_models_are_refused_or_right(run, tmp_path_factory, chance):
    try_damage(run, tmp_path_factory.getbasetemp(), chance)


@pytest.mark.parametrize("name", ["agent.json", "layout.json"])
@settings(max_examples=20)
@given(chances)
def test_every_damage_to_what_was_learnt_is_found(run, tmp_path_factory, name, chance):
    copy = tmp_path_factory.getbasetemp() / f"learnt-{name}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run / "model-last", copy)
    content = (copy / name).read_bytes()
    # Some damage leaves good JSON: a reply, or a size, would be another one.
    changed = chance.choice([mangle, mangle_bytes])(content, chance)
    (copy / name).write_bytes(changed)
    if changed == content:
        Chatbot(copy)
        return
    reason = "bytes, expected" if len(changed) != len(content) else "another checksum than"
    with pytest.raises(ModelError, match=rf"{copy}  is damaged: {name} has .*{reason}"):
        Chatbot(copy)


def test_models_without_checksums_and_with_another_config_are_loaded(run, tmp_path):
    copy = tmp_path / "old"
    shutil.copytree(run / "model-last", copy)
    expected = replies(copy)
    config = (copy / "config.cfg").read_text()
    (copy / "config.cfg").write_text(config.replace("max_steps = 4", "max_steps = 5"))
    assert config != (copy / "config.cfg").read_text() and replies(copy) == expected
    meta = json.loads((copy / "meta.json").read_text())
    assert sorted(meta["files"]) == ["agent.json", "layout.json"]
    (copy / "meta.json").write_text(json.dumps({**meta, "files": 3}))
    with pytest.raises(ModelError, match="meta.json has no checksums where they should be"):
        replies(copy)
    del meta["files"]
    (copy / "meta.json").write_text(json.dumps(meta))
    assert replies(copy) == expected


@pytest.mark.slow
@settings(max_examples=500)
@given(chances)
def test_many_damaged_models_are_refused_or_right(run, tmp_path_factory, chance):
    try_damage(run, tmp_path_factory.getbasetemp(), chance)


@settings(max_examples=100)
@given(chances)
def test_every_damage_to_a_checkpoint_is_found(run, tmp_path_factory, chance):
    newest = Checkpoints(run).newest(print)
    copy = tmp_path_factory.getbasetemp() / newest.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(newest, copy)
    assert damage(copy) == ""
    path = chance.choice(files_of(copy))
    content = path.read_bytes()
    changed = mangle_bytes(content, chance)
    path.write_bytes(changed)
    if path.name != "checkpoint.json":
        assert bool(damage(copy)) == (changed != content)
    else:
        assert isinstance(damage(copy), str)
