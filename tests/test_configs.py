"""Every shipped config is valid, and trains on made-up data of its format."""

import gzip
import io
import json
import pickle
from itertools import product

import numpy
import pytest

from tests.conftest import ROOT
from tests.pretrained.tiny_encoder import tiny_encoder
from thincdialog.api import evaluate, load, load_config, train
from thincdialog.config import load_code, resolve_config
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


def code_of(path):
    """Return the file that a config needs with --code, or None."""
    code = path.with_suffix(".py")
    return code if code.exists() else None


def write_digits(folder):
    """Write a copy of MNIST with very few images."""
    generator = numpy.random.default_rng(0)
    parts = [
        (generator.integers(0, 255, (40, 28, 28), dtype="u1"), numpy.arange(40) % 10)
        for _ in range(2)
    ]
    with gzip.open(folder / "mnist.pkl.gz", "wb") as file:
        pickle.dump(parts, file, protocol=4)


# The data that a teacher of a shipped config reads; None if the teacher generates its own.
DATA = {
    "thincdialog.CoffeeOrder.v1": None,
    "thincdialog.Conversations.v1": ("jsonl", conversations),
    "thincdialog.LabelledText.v1": ("jsonl", labelled),
    "thincdialog.NumberedText.v1": ("txt", stories),
    "thincdialog.MLDatasets.v1": "mnist",
}


QUICK = ("quickstart", "intent", "ranker")


def marked(path, also=()):
    marks = [*also, pytest.mark.torch] if "torch" in path.stem else also
    return pytest.param(path, marks=marks, id=path.stem)


@pytest.fixture(params=map(marked, CONFIGS))
def path(request):
    return request.param


def test_configs_begin_with_comments(path):
    lines = path.read_text(encoding="utf8").splitlines()
    assert lines[0].startswith("# ")
    # A comment after a value would become a part of it.
    assert not [line for line in lines if " #" in line and not line.startswith("#")]


def on_little_data(checked, tmp_path):
    """RETURNS: Overrides for two steps of a shipped config, and the kind of its data."""
    ((name, task),) = checked.interpolated["tasks"].items()
    overrides = {"training.max_steps": 2}
    tokenizer = checked.interpolated.get("tokenizer", {})
    # With a table of the real size, a step takes seconds.
    if "n_rows" in tokenizer:
        overrides["tokenizer.n_rows"] = 500
    if "views" in tokenizer:
        overrides["tokenizer.views.ngrams.n_rows"] = 500
    data = DATA[task["@teachers"]]
    if data == "mnist":
        write_digits(tmp_path)
        overrides["paths.mnist"] = str(tmp_path)
    elif data is None:
        overrides.update({f"tasks.{name}.n_{split}": 30 for split in ("train", "dev", "test")})
    else:
        suffix, make = data
        file = tmp_path / f"data.{suffix}"
        file.write_text("\n".join(make()) + "\n", encoding="utf8")
        overrides.update({f"paths.{split}": str(file) for split in ("train", "dev", "test")})
    return overrides, data


def encoder_paths(path, tmp_path):
    """RETURNS: Overrides that make a config with an encoder use a tiny one."""
    if "pretrained" not in path.stem:
        return {}
    encoder = str(tiny_encoder(tmp_path / "encoder"))
    return {"paths.encoder": encoder, "paths.vectors": str(tmp_path / "vectors")}


@pytest.mark.parametrize(
    "path",
    [marked(path, () if path.stem in QUICK else [pytest.mark.slow]) for path in CONFIGS],
)
def test_configs_train_two_steps_and_the_model_is_of_use(path, tmp_path):
    code = code_of(path)
    load_code(code)
    given = encoder_paths(path, tmp_path)
    checked = load_config(path, given)
    assert len(resolve_config(checked)["tasks"]) == 1  # Without data.
    overrides, data = on_little_data(checked, tmp_path)
    overrides.update(given)
    if checked.interpolated["runner"]["@runners"] == "thincdialog.Ray.v1":
        overrides["runner.num_workers"] = 0
    runs, silent = [], {"stdout": io.StringIO(), "stderr": io.StringIO()}
    for out in (tmp_path / "a", tmp_path / "b"):
        result = train(path, output=out, overrides=overrides, code=code, **silent)
        assert json.loads((out / BEST / "meta.json").read_text())["step"] <= 2
        # There are no test images, and no images to chat with.
        split = "dev" if data == "mnist" else "test"
        assert result.scores[split]["examples"] > 0
        assert evaluate(out / BEST, split=split) == result.scores[split]
        assert data == "mnist" or load(out / BEST).respond("where is Mary?")
        runs.append((out / "model-last" / "weights.npy").read_bytes())
    is_hogwild = checked.interpolated["runner"]["@runners"] == "thincdialog.Hogwild.v1"
    assert is_hogwild or runs[0] == runs[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "batcher",
    [
        {"@batchers": "thincdialog.Batchsort.v1", "size": 128},
        {"@batchers": "thincdialog.Words.v1", "budget": 26000},
    ],
    ids=["Batchsort", "Words"],
)
def test_configs_quickstart_learns_as_much_from_batches_of_like_length(batcher):
    config = load_config(ROOT / "configs" / "quickstart.cfg").config
    config["world"]["batcher"], config["baselines"] = batcher, {}
    silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    # With batches of any length: 99.7 %. With replies of similar length alone: 98.9 and 94.3 %.
    assert train(config, **silent).scores["test"]["hits@1"] > 0.992


@pytest.mark.slow
def test_configs_multi_label_learns_from_few_texts(tmp_path):
    """In 20 epochs of batches of 128, no label became probable: micro F1 was 0.11."""
    generator = numpy.random.default_rng(0)
    for split, n_texts in (("train", 300), ("dev", 80)):
        lines = []
        for _ in range(n_texts):
            topics = generator.choice(40, generator.integers(3), replace=False).tolist()
            words = [
                f"{'abc'[n]}word{topic}" for topic in topics for n in generator.integers(3, size=3)
            ]
            labels = [f"topic {topic}" for topic in topics]
            lines.append(json.dumps({"text": " ".join([*words, "well"]), "label": labels}))
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines))
    paths = {f"paths.{split}": str(tmp_path / f"{split}.jsonl") for split in ("train", "dev")}
    silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    result = train(ROOT / "configs" / "multi_label.cfg", overrides=paths, **silent)
    assert result.scores["dev"]["micro_f1"] > 0.9
