"""Embedding tables that are initialised from a folder's table: which word gets which vector."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from tests.pretrained.folders import PIECES, write_pieces, write_table
from tests.pretrained.tiny_encoder import tiny_encoder
from tests.training.examples import CLASSIFIER, quietly_train
from thincdialog.api import DialogError, load
from thincdialog.pretrained.encoder import encode, text_encoder
from thincdialog.pretrained.folder import read_folder
from thincdialog.pretrained.tokenizer import PretrainedTokenizer
from thincdialog.pretrained.word_vectors import read_table

TEXTS = ["Hello there", "the lamps", "is it a xylophone?", "xylophone", ""]
# The pieces of each text. Unknown pieces have no vector.
CUT = [["hello", "there"], ["the", "lamp", "##s"], ["is", "it", "a", "?"], [], []]


def means(E, cut):
    rows = [[PIECES.index(piece) for piece in pieces] for pieces in cut]
    return np.stack([E[each].mean(0) if each else np.zeros_like(E[0]) for each in rows])


def encoded(folder):
    model = text_encoder(read_folder(str(folder)))
    model.initialize()
    return encode(model, *PretrainedTokenizer(str(folder)).encode_many(TEXTS))


def test_word_vectors_of_a_table_are_means_of_pieces(tmp_path):
    E = write_table(tmp_path / "table")
    found = dict(read_table(str(tmp_path / "table"), [b"lamps", b"red", b"xylophone"], 4))
    assert list(found) == [b"lamps", b"red"]
    expected = means(E, [["lamp", "##s"], ["red"]])
    assert np.allclose(list(found.values()), expected[:, :4], atol=1e-6)


@pytest.mark.parametrize("normalize", [False, True])
def test_texts_have_the_vectors_of_model2vec(tmp_path, normalize):
    E = write_table(tmp_path / "table", normalize=normalize)
    expected = means(E, CUT)
    if normalize:
        expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    assert np.allclose(encoded(tmp_path / "table"), expected, atol=1e-6)


@pytest.mark.parametrize("inside", [False, True])
def test_texts_have_the_vectors_of_wordllama(tmp_path, inside):
    """The files are in one folder (from the hub) or in two (from the package)."""
    from safetensors.numpy import save_file

    weights, pieces = (tmp_path / (name * inside) for name in ("weights", "tokenizers"))
    weights.mkdir(exist_ok=True), pieces.mkdir(exist_ok=True)
    E = np.random.default_rng(0).normal(size=(len(PIECES), 5)).astype(np.float16)
    save_file({"embedding.weight": E}, weights / "l2_supercat_5.safetensors")
    write_pieces(pieces / "l2_supercat_tokenizer_config.json")
    assert np.allclose(encoded(tmp_path), means(E.astype("f"), CUT), atol=1e-6)
    save_file({"embedding.weight": E}, weights / "l2_supercat_6.safetensors")
    with pytest.raises(DialogError, match="has no config.json.* or one table of WordLlama with"):
        read_folder(str(tmp_path))


def test_word_vectors_of_other_folders_are_one_clear_error(tmp_path):
    tiny_encoder(tmp_path / "encoder")
    with pytest.raises(DialogError, match="is an encoder.*thincdialog distill .*encoder --texts"):
        list(read_table(str(tmp_path / "encoder"), [b"red"], 4))
    write_table(tmp_path / "table", width=3)
    with pytest.raises(DialogError, match="vectors of width 3, but the table has width 4"):
        list(read_table(str(tmp_path / "table"), [b"red"], 4))


def test_a_trained_model_no_longer_needs_its_initial_table(tmp_path):
    write_table(tmp_path / "table")
    rows = [{"text": text, "label": text} for text in ("red lamp", "hello there")] * 4
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    initial = {"@initializers": "thincdialog.WordVectors.v1", "path": str(tmp_path / "table")}
    config = f"""[tasks.words]
@teachers = "thincdialog.LabelledText.v1"
train = "{tmp_path / "train.jsonl"}"
{CLASSIFIER}width = 4
init_E = {json.dumps(initial)}

[training]
max_steps = 1
"""
    _, shown = quietly_train(config, tmp_path / "out")
    assert "table: vectors of 4 of 4 words (100.0 %)" in shown
    shutil.rmtree(tmp_path / "table")
    assert load(tmp_path / "out" / "model-best").respond("red lamp") in ("red lamp", "hello there")
