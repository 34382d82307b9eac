"""Vectors of a frozen encoder: each distinct text is encoded only once for all runs."""

import copy
import io
import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.ops.array_backends import ragged
from tests.pretrained.folders import write_table
from tests.pretrained.tiny_encoder import WIDTH, tiny_encoder
from thincdialog.api import load, train
from thincdialog.config import shipped_configs
from thincdialog.data.tokenizers.hash_ngrams import HashNgramTokenizer
from thincdialog.data.tokenizers.views import ViewsTokenizer
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.views import Views
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.pretrained import encoder as encoder_file
from thincdialog.pretrained.encoder import PretrainedEncoder
from thincdialog.pretrained.frozen import encode_ahead
from thincdialog.pretrained.tokenizer import PretrainedTokenizer

TEXTS = ["hello there", "good bye", "see you", "hello", "a b c"]


@pytest.fixture
def folder(tmp_path):
    return str(tiny_encoder(tmp_path / "encoder"))


@pytest.fixture
def computed(monkeypatch):
    """Return a list that gets the number of texts of each call of the encoder."""
    counts, encode = [], encoder_file.encode

    def counting(model, ids, lengths):
        counts.append(len(lengths))
        return encode(model, ids, lengths)

    monkeypatch.setattr(encoder_file, "encode", counting)
    return counts


def layer(folder, place, **settings):
    model = PretrainedEncoder(folder, vectors=str(place), **settings)
    model.initialize()
    return model


def tokens(folder, *conversations):
    """Return the tokens of conversations. The current turn of each is the last."""
    tokenizer = PretrainedTokenizer(folder)
    rows = [
        [(id, len(turns) - 1 - n) for n, text in enumerate(turns) for id in tokenizer.encode(text)]
        for turns in conversations
    ]
    X = ragged([[id for id, _ in row] for row in rows])
    X.dataXd[:, 1] = [segment for row in rows for _, segment in row]
    return X


def test_frozen_vectors_equal_those_of_the_encoder(folder, tmp_path):
    trained = PretrainedEncoder(folder, frozen=False, dropout=0.0)
    trained.initialize()
    X = tokens(folder, *([text] for text in TEXTS))
    expected, found = trained.predict(X), layer(folder, tmp_path).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_frozen_encodes_each_turn_separately(folder, tmp_path):
    one = layer(folder, tmp_path / "vectors")
    hello, bye, you = one.predict(tokens(folder, ["hello"], ["bye"], ["you"]))
    X = tokens(folder, ["hello", "bye", "you"], ["you"], ["bye", "hello"])
    assert X.dataXd[0, 1] == 2
    for n_segments, expected in (
        (1, [[(hello + bye + you) / 3], [you], [(bye + hello) / 2]]),
        (2, [[you, (hello + bye) / 2], [you, 0 * you], [hello, bye]]),
        (3, [[you, bye, hello], [you, 0 * you, 0 * you], [hello, bye, 0 * you]]),
    ):
        model = layer(folder, tmp_path / "vectors", n_segments=n_segments)
        wanted = np.array(expected).reshape(3, n_segments * WIDTH)
        np.testing.assert_allclose(model.predict(X), wanted, rtol=1e-5, atol=1e-6)
        assert model.get_dim("nO") == n_segments * WIDTH
        nothing = model.predict(ragged([[], []]))
        assert nothing.shape == (2, n_segments * WIDTH) and not nothing.any()


def test_frozen_has_no_parameters_and_no_gradient(folder, tmp_path):
    model, X = layer(folder, tmp_path), tokens(folder, ["hello"], ["bye"])
    Y, backprop = model.begin_update(X)
    dX = backprop(Y)
    assert dX.dataXd.shape == X.dataXd.shape and not dX.dataXd.any()
    assert not any(node.param_names for node in model.walk())


def test_frozen_remembers_texts(folder, tmp_path, computed):
    model = layer(folder, tmp_path / "vectors")
    copies = [model.copy(), copy.deepcopy(model)]
    first = model.predict(tokens(folder, ["hello"], ["bye"], ["hello"]))
    again = [each.predict(tokens(folder, ["bye"], ["hello"], ["you"])) for each in copies]
    assert computed == [2, 1]
    assert (again[0][:2] == first[1::-1]).all() and (again[0] == again[1]).all()
    assert not (tmp_path / "vectors").exists()  # Only training writes vectors.
    assert (pickle.loads(pickle.dumps(model)).predict(tokens(folder, ["hello"])) == first[0]).all()


def test_frozen_remembers_texts_up_to_a_limit(folder, tmp_path, computed, monkeypatch):
    monkeypatch.setattr("thincdialog.pretrained.frozen._MOST_RECENT", 2)
    model = layer(folder, tmp_path)
    for text in ("a", "b", "a", "c", "a", "b"):
        model.predict(tokens(folder, [text]))
    assert len(computed) == 4  # a, b, c, and b again.


def test_frozen_encoders_of_one_folder_share_vectors(folder, tmp_path, computed):
    first, second = (layer(folder, tmp_path / "vectors", n_segments=n) for n in (1, 2))
    first.predict(tokens(folder, ["hello"], ["bye"]))
    second.predict(tokens(folder, ["hello", "bye"]))
    assert computed == [2]
    # Encoders with other settings do not share vectors.
    layer(folder, tmp_path / "others").predict(tokens(folder, ["hello"]))
    layer(folder, tmp_path / "vectors", pooling="max").predict(tokens(folder, ["hello"]))
    assert computed == [2, 1, 1]


def views_of(folder, place):
    parts = {"ngrams": HashNgramTokenizer(n_rows=32), "pieces": PretrainedTokenizer(folder)}
    tokenizer = ViewsTokenizer(parts)
    encoder = PretrainedEncoder(folder, vectors=str(place))
    model = Views({"ngrams": BagEncoder(4), "pieces": encoder}, join="concatenate")
    set_vocabulary(model, tokenizer.n_ids, tokenizer.ranges)
    model.initialize()
    return model, tokenizer


def test_frozen_encodes_texts_ahead_of_predictions(folder, tmp_path, computed):
    seen = []
    model, tokenizer = views_of(folder, tmp_path / "vectors")
    encode_ahead(model, tokenizer, [*TEXTS, *TEXTS[:2]], seen.append)
    assert sum(computed) == len(TEXTS) == seen[-1]
    later, _ = views_of(folder, tmp_path / "vectors")
    encode_ahead(later, tokenizer, TEXTS)
    X = ragged([tokenizer.encode(text).tolist() for text in TEXTS])
    assert (later.predict(X)[:, 4:] == model.predict(X)[:, 4:]).all()
    assert sum(computed) == len(TEXTS)
    other = tiny_encoder(tmp_path / "other", seed=1)
    encode_ahead(views_of(str(other), tmp_path / "vectors")[0], tokenizer, TEXTS)
    assert sum(computed) == 2 * len(TEXTS)


CONFIG = """
[system]
ops = "numpy"

[tasks.intent]
@teachers = "thincdialog.LabelledText.v1"
train = {train}
test = {test}

[tokenizer]
@tokenizers = "thincdialog.Pretrained.v1"
folder = {folder}

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@models = "thincdialog.PretrainedEncoder.v1"
folder = {folder}
vectors = {vectors}

[world]
@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 4

[training]
max_epochs = 3.0
n_samples = 0
"""


@pytest.fixture
def config(folder, tmp_path):
    paths = {"folder": folder, "vectors": str(tmp_path / "vectors")}
    for name, texts in (("train", TEXTS), ("test", ["hello", "something new", "you"])):
        lines = [json.dumps({"text": text, "label": "xy"["h" in text]}) for text in texts]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        paths[name] = str(tmp_path / f"{name}.jsonl")
    return CONFIG.format(**{name: json.dumps(path) for name, path in paths.items()})


# The texts of train and test, the two labels, and the sample from which sizes are inferred.
N_DISTINCT, OF_EACH_RUN = len({*TEXTS, "something new", "x", "y"}) + 1, 1


def trained(config, **settings):
    return train(config, stdout=io.StringIO(), stderr=io.StringIO(), **settings)


def test_frozen_computes_nothing_in_a_second_run(config, computed):
    trained(config)
    assert sum(computed) == OF_EACH_RUN + N_DISTINCT
    trained(config)
    assert sum(computed) == OF_EACH_RUN + N_DISTINCT + OF_EACH_RUN


@pytest.mark.slow
def test_frozen_run_that_was_killed_keeps_its_vectors(config, computed, tmp_path):
    code = f"""
import os, signal
from thincdialog.pretrained import frozen, vector_files
frozen._AT_ONCE = 2
add = vector_files.VectorFiles.add
def add_and_die(self, keys, vectors):
    add(self, keys, vectors)
    if self._n_own >= 4:
        os.kill(os.getpid(), signal.SIGKILL)
vector_files.VectorFiles.add = add_and_die
from thincdialog.api import load, train
from thincdialog.config import shipped_configs
train({config!r})
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == -9
    trained(config)
    assert sum(computed) == OF_EACH_RUN + N_DISTINCT - 4


@pytest.mark.slow
def test_frozen_runs_at_the_same_time_keep_all_vectors(config, computed):
    code = f"from thincdialog.api import train; train({config!r})"
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL) for _ in range(2)
    ]
    assert [each.wait() for each in both] == [0, 0]
    trained(config)
    assert sum(computed) == OF_EACH_RUN


def small(name, folder, tmp_path):
    """Return overrides of a shipped config for little data and a tiny encoder."""
    turns = [{"speaker": who, "text": text} for who, text in zip("ABABA", TEXTS)]
    rows = {
        "intent": [{"text": text, "label": "xy"["h" in text]} for text in TEXTS],
        "ranker": [{"turns": turns[n:]} for n in range(3)],
    }[name]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    data = dict.fromkeys(("paths.train", "paths.test"), str(tmp_path / "data.jsonl"))
    others = {"paths.encoder": folder, "paths.vectors": str(tmp_path / "vectors")}
    return {**data, **others, "training.max_epochs": 2.0, "tokenizer.views.ngrams.n_rows": 64}


@pytest.mark.parametrize("name", ["intent", "ranker"])
def test_frozen_encoders_of_shipped_configs(name, folder, tmp_path, computed):
    config, overrides = shipped_configs()[f"{name}_pretrained"], small(name, folder, tmp_path)
    trained(config, output=tmp_path / "run", overrides=overrides)
    n_first = sum(computed)
    trained(config, overrides=overrides)
    assert sum(computed) - n_first <= OF_EACH_RUN * 2 < n_first
    assert load(tmp_path / "run").respond(TEXTS[0])


def test_frozen_table_serves_the_shipped_config(tmp_path):
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    write_table(tmp_path / "table", normalize=True)
    overrides = small("intent", str(tmp_path / "table"), tmp_path)
    trained(shipped_configs()["intent_pretrained"], output=tmp_path / "run", overrides=overrides)
    # The saved model contains the table.
    shutil.rmtree(tmp_path / "table")
    assert load(tmp_path / "run").respond(TEXTS[0])
