"""Every shipped config is sound, and trains on made-up data of its format."""

import io
import json
from itertools import product

import pytest

from tests.conftest import ROOT
from thincdialog.api import evaluate, load, load_config, train
from thincdialog.config import resolve_config
from thincdialog.files.saved_model import BEST

CONFIGS = sorted((ROOT / "configs").glob("*.cfg"))
COLOURS = ("red", "green", "blue", "amber")
PLACES = ("garden", "kitchen", "office", "hall")


def conversations():
    for number, (colour, place) in enumerate(product(COLOURS, PLACES)):
        texts = f"what is in the {place}?|a {colour} lamp|and its colour?|it is {colour}".split("|")
        turns = [{"speaker": "ab"[n % 2], "text": text} for n, text in enumerate(texts)]
        yield json.dumps({"id": str(number), "turns": turns})


def labelled():
    for colour, place in product(COLOURS, PLACES):
        yield json.dumps({"text": f"the {colour} one in the {place}", "label": colour})


def stories():
    for first, second in product(PLACES, PLACES):
        yield f"1 Mary moved to the {first}."
        yield f"2 John went to the {second}."
        yield f"3 Where is Mary?\t{first}\t1"


# What a teacher of a shipped config reads; None if it makes its data itself.
DATA = {
    "thincdialog.CoffeeOrder.v1": None,
    "thincdialog.Conversations.v1": ("jsonl", conversations),
    "thincdialog.LabelledText.v1": ("jsonl", labelled),
    "thincdialog.NumberedText.v1": ("txt", stories),
}


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def path(request):
    return request.param


def test_configs_begin_with_comments(path):
    lines = path.read_text(encoding="utf8").splitlines()
    assert lines[0].startswith("# ")
    # A comment behind a value would become a part of it.
    assert not [line for line in lines if " #" in line and not line.startswith("#")]


def test_configs_train_two_steps_and_the_model_is_of_use(path, tmp_path):
    checked = load_config(path)
    assert len(resolve_config(checked)["tasks"]) == 1  # Without data.
    ((name, task),) = checked.interpolated["tasks"].items()
    overrides = {"training.max_steps": 2}
    if "n_rows" in checked.interpolated["tokenizer"]:
        overrides["tokenizer.n_rows"] = 500  # a table of the real size takes seconds a step
    data = DATA[task["@teachers"]]
    if data is None:
        overrides.update({f"tasks.{name}.n_{split}": 30 for split in ("train", "dev", "test")})
    else:
        suffix, make = data
        file = tmp_path / f"data.{suffix}"
        file.write_text("\n".join(make()) + "\n", encoding="utf8")
        overrides.update({f"paths.{split}": str(file) for split in ("train", "dev", "test")})
    runs, silent = [], {"stdout": io.StringIO(), "stderr": io.StringIO()}
    for out in (tmp_path / "a", tmp_path / "b"):
        result = train(path, output=out, overrides=overrides, **silent)
        assert json.loads((out / BEST / "meta.json").read_text())["step"] <= 2
        assert result.scores["test"]["examples"] > 0
        assert evaluate(out / BEST) == result.scores["test"]
        assert load(out / BEST).respond("where is Mary?")
        runs.append((out / "model-last" / "weights.npy").read_bytes())
    assert runs[0] == runs[1]
