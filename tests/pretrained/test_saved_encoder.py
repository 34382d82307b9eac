"""A saved model includes its encoder, or says where the encoder was."""

import io
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.pretrained.test_frozen import CONFIG
from tests.pretrained.tiny_encoder import tiny_encoder
from thincdialog.api import load, train
from thincdialog.errors import ModelError
from thincdialog.pretrained.folder import read_folder

TEXTS = ["hello there", "hello you", "good bye", "bye"]


@pytest.fixture
def encoder(tmp_path):
    return tiny_encoder(tmp_path / "encoder")


@pytest.fixture
def run(tmp_path, encoder):
    """Return a function that trains into tmp_path/run."""
    lines = [json.dumps({"text": text, "label": "ab"["bye" in text]}) for text in TEXTS]
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    data = json.dumps(str(tmp_path / "data.jsonl"))
    paths = {"folder": json.dumps(str(encoder)), "vectors": json.dumps(str(tmp_path / "vectors"))}

    def trained(include=True, **settings):
        overrides = {
            "agent.model.encoder.include_encoder": include,
            "paths.encoder": str(encoder),
            "tokenizer.folder": "${paths.encoder}",
            "training.max_epochs": 40.0,
            "training.eval_every_epochs": 20.0,
            "agent.model.encoder.folder": "${paths.encoder}",
            **settings.pop("overrides", {}),
        }
        output = tmp_path / "run"
        quiet = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        config = CONFIG.format(train=data, test=data, **paths) + "\n[paths]\nencoder = null\n"
        train(config, output=output, overrides=overrides, **quiet, **settings)
        return output

    return trained


def answers(model):
    return [load(model).respond(text) for text in TEXTS]


@pytest.mark.slow
def test_saved_encoder_answers_on_another_machine(run, encoder, tmp_path):
    model = run() / "model-best"
    expected = answers(model)
    moved = tmp_path / "elsewhere" / "model"
    shutil.copytree(model, moved)
    for path in (encoder, tmp_path / "run", tmp_path / "vectors"):
        shutil.rmtree(path)
    code = "import sys; from thincdialog.api import load; bot = load('model')\n"
    code += "for text in sys.argv[1:]: print(bot.respond(text))"
    empty = {**os.environ, "PYTHONPATH": os.getcwd(), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code, *TEXTS]
    done = subprocess.run(command, cwd=moved.parent, env=empty, capture_output=True, text=True)
    assert done.stdout.splitlines() == expected and len(set(expected)) == 2, done.stderr
    assert not (tmp_path / "cache").exists()


def test_saved_encoder_is_written_once_and_not_into_checkpoints(run, encoder):
    output = run()
    assert not list(output.glob("checkpoint-*/encoders"))
    (last,) = output.glob("model-last/encoders/*/model.safetensors")
    before = last.stat()
    assert last.parent.name == read_folder(str(encoder)).checksum
    run(resume=True, overrides={"training.max_epochs": 60.0})
    assert (last.stat().st_ino, last.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_saved_encoder_that_is_not_included(run, encoder, tmp_path):
    model = run(include=False) / "model-best"
    expected = answers(model)
    assert not (model / "encoders").exists()
    encoder.rename(tmp_path / "moved")
    with pytest.raises(ModelError) as error:
        load(model)
    assert str(encoder) in str(error.value) and "--paths.encoder FOLDER" in str(error.value)
    assert "\n" not in str(error.value)
    found = load(model, overrides={"paths.encoder": str(tmp_path / "moved")})
    assert [found.respond(text) for text in TEXTS] == expected
    tiny_encoder(encoder, seed=1)
    with pytest.raises(ModelError, match="is not the encoder that") as error:
        load(model)
    assert str(encoder) in str(error.value) and "\n" not in str(error.value)


def test_saved_encoder_in_a_relative_folder_is_found_from_another_folder(
    run, encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    model = run(include=False, overrides={"paths.encoder": "encoder"}) / "model-best"
    expected = answers(model)
    monkeypatch.chdir(model)
    assert answers(model) == expected


def test_saved_encoder_that_was_changed_before_resuming_is_refused(run, encoder):
    run()
    tiny_encoder(encoder, seed=1)
    with pytest.raises(ModelError, match="is not the encoder that"):
        run(resume=True, overrides={"training.max_epochs": 60.0})


@pytest.mark.parametrize(
    "content", ["[]", '{"encoders": [1]}', '{"encoders": [{"checksum": "/"}]}']
)
def test_saved_encoder_with_a_damaged_list_is_refused(run, content):
    model = run() / "model-best"
    (model / "encoders.json").write_text(content)
    meta = json.loads((model / "meta.json").read_text())
    del meta["files"]["encoders.json"]
    (model / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ModelError, match="encoders.json"):
        load(model)


def test_saved_encoder_that_links_out_of_the_model_is_refused(run, encoder):
    model = run() / "model-best"
    (own,) = model.glob("encoders/*")
    shutil.rmtree(own)
    own.symlink_to(encoder)
    meta = json.loads((model / "meta.json").read_text())
    meta["files"] = {}
    (model / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ModelError, match="leads out of its folder"):
        load(model)
