"""Tables that start with word vectors: which rows get which vector, and when the file is read."""

import json

import numpy as np
import pytest

from tests.training.examples import CLASSIFIER, quietly_train
from thincdialog.api import ConfigError, DataError, Experiment, evaluate, load
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.word_vectors import rows_of_words
from thincdialog.registry import registry

VECTORS = {"red": [3, 0, 0, 0], "one": [0, 3, 0, 0], "Red": [9, 9, 9, 9], "other": [5, 5, 5, 5]}
# Training that changes no weights.
STILL = {"training.optimizer.learn_rate": 0.0, "training.optimizer.use_averages": False}
# The vectors of words in the training data; they are scaled to the size of random rows, 0.1 /
# sqrt(3).
FOUND = np.array([VECTORS["red"], VECTORS["one"]], dtype="f")
RED, ONE = FOUND * (0.1 / np.sqrt(3 * np.square(FOUND).mean()))
TEXTS = ["red red one", "one pink", "red", "one one"] * 5


@pytest.fixture
def path(tmp_path):
    rows = (f"{word} {' '.join(map(str, vector))}\n" for word, vector in VECTORS.items())
    (tmp_path / "vectors.txt").write_text("".join(rows))
    return str(tmp_path / "vectors.txt")


@pytest.fixture
def config(tmp_path, path):
    rows = [{"text": text, "label": text.split()[-1]} for text in TEXTS]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = '[tasks.words]\n@teachers = "thincdialog.LabelledText.v1"\n'
    task += f'train = "{tmp_path / "train.jsonl"}"\n'
    table = f"""width = 4

[agent.model.encoder.init_E]
@initializers = "thincdialog.WordVectors.v1"
path = "{path}"

[training]
max_steps = 1
n_samples = 0
"""
    return task + CLASSIFIER + table


def table_of(model):
    return next(node for node in model.walk() if node.has_dim("nV")).get_param("E")


def begun(text, **changes):
    """Return the table at the beginning of training, the tokenizer, and the lines that it
    printed."""
    experiment = Experiment.from_config(text, changes)
    experiment.agent.initialize(experiment.training_split(), tokenizer=experiment.tokenizer)
    return table_of(experiment.agent.model), experiment.tokenizer, experiment.agent.beginning


def test_word_vectors_go_to_the_rows_of_a_vocabulary(config, path):
    E, tokenizer, lines = begun(config)
    rows = tokenizer.word_ids([])
    assert sorted(rows) == ["one", "pink", "red"]
    assert np.allclose(E[rows["red"]], RED) and np.allclose(E[rows["one"]], ONE)
    assert list(lines) == [f"{path}: vectors of 2 of 3 words (66.7 %)"]
    others = np.delete(E, [rows["red"], rows["one"]], axis=0)
    assert 0 < np.abs(others).max() <= 0.1
    assert len(np.unique(others)) == others.size
    assert (begun(config)[0] == E).all()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "name, options", [("HashNgrams", {"char_ngrams": [2, 3]}), ("WordNgrams", {})]
)
def test_word_vectors_go_to_the_rows_that_words_are_encoded_as(config, name, options, streaming):
    changes = {f"tokenizer.{key}": value for key, value in {"n_rows": 500, **options}.items()}
    changes["tasks.words.streaming"] = streaming
    text = config.replace("thincdialog.Words.v1", f"thincdialog.{name}.v1")
    E, tokenizer, lines = begun(text, **changes)
    assert "vectors of 2 of 3 words" in lines[0]
    for word, vector in (("red", RED), ("one", ONE)):
        assert np.allclose(E[tokenizer.encode(word)[0]], vector)
    assert (E == 0).any(axis=1).sum() == 2  # No other row gets a vector.


def test_word_vectors_of_words_with_one_row_are_those_of_the_first(config):
    text = config.replace("thincdialog.Words.v1", "thincdialog.HashNgrams.v1")
    E, _, lines = begun(text, **{"tokenizer.n_rows": 1})
    assert E[-1][0] > 0.1 and not E[-1][1:].any()
    assert lines[0].endswith("1 of them share a row with a more frequent word, and get its vector")


def test_word_vectors_of_subwords_go_to_whole_words(config):
    pytest.importorskip("sentencepiece")
    text = config.replace("thincdialog.Words.v1", "thincdialog.Subwords.v1")
    E, tokenizer, _ = begun(text, **{"tokenizer.size": 300})
    (row,) = tokenizer.encode("red")
    assert E[row][0] > 0.1 and not E[row][1:].any()


def test_word_vectors_are_read_once_and_never_for_a_saved_model(config, path, tmp_path):
    _, shown = quietly_train(config, tmp_path / "out")
    assert shown.count("vectors of 2 of 3 words") == 1
    (tmp_path / "vectors.txt").unlink()
    model = tmp_path / "out" / "model-best"
    train = str(tmp_path / "train.jsonl")
    before = load(model)
    assert before.respond("red") in ("red", "one", "pink")
    assert evaluate(model, split="train", overrides={"tasks.words.train": train})["examples"] == 20
    with pytest.raises(DataError, match="vectors.txt  file not found"):
        quietly_train(config, tmp_path / "other")


def test_word_vectors_that_do_not_fit_are_one_clear_error(config, path, tmp_path):
    with pytest.raises(
        DataError, match="vectors of width 4, but the table has width 8: set embed_width"
    ):
        begun(config, **{"agent.model.encoder.width": 8})
    with pytest.raises(DataError, match="the tokenizer's ids are not words"):
        begun(config.replace("Words.v1", "Bytes.v1"))
    (tmp_path / "vectors.txt").write_text("rouge 1 2 3 4\n")
    with pytest.raises(DataError, match="has none of the 3 words .*: is it in another language"):
        begun(config)
    with pytest.raises(ConfigError, match="'path' of thincdialog.WordVectors.v1 is missing"):
        begun(config.replace(f'path = "{path}"', ""))


def test_word_vectors_are_not_read_where_a_saved_model_has_the_table(config, path, tmp_path):
    quietly_train(config, tmp_path / "one")
    model = tmp_path / "one" / "model-best"
    begin = {"training.init_from": str(model), **STILL}
    (tmp_path / "vectors.txt").unlink()
    _, shown = quietly_train(config, tmp_path / "two", **begin)
    assert f"  {path}: not read, as the model has vectors of these words" in shown
    one, two = (load(tmp_path / name / "model-best").agent.model for name in ("one", "two"))
    assert table_of(one).tobytes() == table_of(two).tobytes()
    # A table with another width is new, so the file is read.
    begin["agent.model.encoder.width"] = 2
    with pytest.raises(DataError, match="vectors.txt  file not found"):
        quietly_train(config, tmp_path / "three", **begin)
    (tmp_path / "vectors.txt").write_text("red 1 2\none 3 4\n")
    _, shown = quietly_train(config, tmp_path / "three", **begin)
    assert (
        "vectors of 2 of 3 words" in shown
        and "initialised, because no saved parameter fits: bag_embed.E" in shown
    )


def test_word_vectors_are_read_where_a_table_of_their_shape_finds_no_other(path, config, tmp_path):
    """The table seems to come from the saved model, but does not."""
    quietly_train(config, tmp_path / "one")
    layout = json.loads((tmp_path / "one" / "model-best" / "layout.json").read_text())
    for each in layout["parameters"]:
        each["name"] = each["name"].replace("bag_embed", "other")
    model = tmp_path / "one" / "model-best"
    (model / "layout.json").write_text(json.dumps(layout))
    meta = json.loads((model / "meta.json").read_text())
    del meta["files"]
    (model / "meta.json").write_text(json.dumps(meta))
    begin = {"training.init_from": str(model), **STILL}
    _, shown = quietly_train(config, tmp_path / "two", **begin)
    assert "vectors of 2 of 3 words" in shown and "not read" not in shown
    E = table_of(load(tmp_path / "two" / "model-best").agent.model)
    assert all(np.isclose(E, vector).all(axis=1).any() for vector in (RED, ONE))


def test_word_vectors_are_in_the_rows_of_each_segment(path):
    """In some tables, each word has several rows."""
    registry.ensure_populated()
    init = registry.initializers.get("thincdialog.WordVectors.v1")(path)
    with rows_of_words(lambda: {"red": 2}) as rows:
        for _ in range(2):
            model = BagEmbed(4, 3, segments="tables", n_segments=2, init_E=init)
            model.initialize()
    E = model.get_param("E")
    assert E[4].tolist() == E[5].tolist() and len(rows.lines) == 1
    assert E[4][0] > 0.1 and not E[4][1:].any()
