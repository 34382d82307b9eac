"""A damaged model folder is refused by name, or still gives the replies of the saved model."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzzing import mangle, mangle_bytes, within_time
from tests.training.examples import quietly_train
from thincdialog.api import Chatbot
from thincdialog.errors import ConfigError, DialogError, ModelError

ASKED = ("hi", "a large coffee with milk please", "two teas", "that is all")
# Files of the trained model itself, whose checksums are compared.
TRAINED = ("weights.npy", "agent.json", "layout.json")
chances = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Train and save a model. Return its folder, and its replies."""
    folder = tmp_path_factory.mktemp("run")
    quietly_train(output=folder, training__max_steps=4)
    return folder / "model-best", replies(folder / "model-best")


def replies(folder):
    chatbot = Chatbot(folder)
    return [chatbot.respond(text) for text in ASKED]


def damaged_copy(folder, copy, chance, name):
    """Copy a model, and damage one file. RETURNS the bytes of the file before and after."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    before = (copy / name).read_bytes()
    after = chance.choice([mangle, mangle_bytes])(before, chance)
    (copy / name).write_bytes(after)
    return before, after


def try_damage(saved, copy, chance):
    folder, expected = saved
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")
    name = chance.choice([path.relative_to(folder).as_posix() for path in files])
    before, after = damaged_copy(folder, copy, chance, name)

    def load():
        try:
            found = replies(copy)
        except (ModelError, ConfigError) as error:
            assert str(copy) in str(error) and len(str(error)) < 20_000
        except DialogError as error:
            # The only other error is that a damaged config names other data.
            assert name == "config.cfg" and "\n" not in str(error)
        else:
            assert name not in TRAINED or after == before or found == expected

    within_time(load)


@settings(max_examples=40)
@given(chances)
def test_damaged_models_are_refused_or_right(saved, tmp_path_factory, chance):
    try_damage(saved, tmp_path_factory.getbasetemp() / "copy", chance)


@pytest.mark.slow
@settings(max_examples=500)
@given(chances)
def test_many_damaged_models_are_refused_or_right(saved, tmp_path_factory, chance):
    try_damage(saved, tmp_path_factory.getbasetemp() / "copy", chance)


@pytest.mark.parametrize("name", ["agent.json", "layout.json"])
@settings(max_examples=20)
@given(chances)
def test_all_damage_to_trained_files_is_found(saved, tmp_path_factory, name, chance):
    """Some damage leaves valid JSON, in which a reply or a size would be different."""
    copy = tmp_path_factory.getbasetemp() / f"learnt-{name}"
    before, after = damaged_copy(saved[0], copy, chance, name)
    if after == before:
        Chatbot(copy)
        return
    reason = "bytes, expected" if len(after) != len(before) else "another checksum than"
    with pytest.raises(ModelError, match=rf"{copy}  is damaged: {name} has .*{reason}"):
        Chatbot(copy)


def test_a_model_whose_config_has_lost_its_tokenizer_is_refused(saved, tmp_path):
    copy = shutil.copytree(saved[0], tmp_path / "copy")
    config = (copy / "config.cfg").read_text()
    (copy / "config.cfg").write_text(config.replace("[tokenizer]", "[uokenizer]"))
    with pytest.raises(ModelError, match=r"reads text, but there is no \[tokenizer\]"):
        Chatbot(copy)


def test_models_without_checksums_and_with_another_config_are_loaded(saved, tmp_path):
    folder, expected = saved
    copy = shutil.copytree(folder, tmp_path / "old")
    config = (copy / "config.cfg").read_text()
    (copy / "config.cfg").write_text(config.replace("max_steps = 4", "max_steps = 5"))
    assert config != (copy / "config.cfg").read_text() and replies(copy) == expected
    meta = json.loads((copy / "meta.json").read_text())
    files = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert set(meta["files"]) == files - {"README.md", "meta.json"}
    (copy / "meta.json").write_text(json.dumps({**meta, "files": 3}))
    with pytest.raises(ModelError, match="meta.json has no checksums where they should be"):
        replies(copy)
    del meta["files"]
    (copy / "meta.json").write_text(json.dumps(meta))
    assert replies(copy) == expected
