"""Tables distilled from an encoder: their words, their vectors, and existing files, which stay."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from tests.pretrained.tiny_encoder import tiny_encoder
from thincdialog.api import DialogError, OutputError, distill
from thincdialog.data.words import normalise, split_words
from thincdialog.pretrained.encoder import encode, text_encoder
from thincdialog.pretrained.folder import read_folder
from thincdialog.pretrained.tokenizer import PretrainedTokenizer

TURNS = ["Hello there?", "the red lamp is in the garden", "what is it? The lamp"]
TEXTS = "\n".join(TURNS)
# Texts in several scripts, with combining marks, emoji and apostrophes.
SCRIPTS = ["I don't pay 1,000.5 for it.", "naïve café\u0301 L’été", "你好吗 ごはん สวัสดี", "हिन्दी में",
           "👍🏽 ok👩\u200d👩\u200d👧", "a\u200bb  c_d", "Ünïcode ИЛИ ναι"]  # fmt: skip


@pytest.fixture
def encoder(tmp_path):
    tiny_encoder(tmp_path / "encoder")
    return tmp_path / "encoder"


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.txt").write_text(TEXTS)
    return tmp_path / "texts.txt"


def table(folder):
    """Return a dict from words to their vectors."""
    from safetensors.numpy import load_file

    rows = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    E = load_file(folder / "model.safetensors")["embeddings"]
    return {word: E[row] for word, row in rows.items()}


def test_distill_keeps_the_distances_of_words_and_weighs_them_by_frequency(
    tmp_path, encoder, texts
):
    done = distill(encoder, texts, tmp_path / "words")
    assert done.width == 8 and done.explained == pytest.approx(1.0)
    found = table(tmp_path / "words")
    counts = Counter(word for text in TURNS for word in split_words(text.lower()))
    assert done.n_words == len(counts) and set(found) == {*counts, "[UNK]"}
    assert not found.pop("[UNK]").any()
    model = text_encoder(read_folder(str(encoder)))
    model.initialize()
    own = PretrainedTokenizer(str(encoder))
    plain = {word: encode(model, *own.encode_many([word]))[0] for word in counts}
    total = sum(counts.values())
    free = {word: found[word] * (1 + counts[word] / total / 1e-3) for word in counts}
    for one in counts:
        for other in counts:
            expected = np.linalg.norm(plain[one] - plain[other])
            assert np.linalg.norm(free[one] - free[other]) == pytest.approx(expected, abs=1e-3)
    # The components with the highest variance come first, and a narrow table keeps them.
    distill(encoder, texts, tmp_path / "narrow", width=3)
    narrow = table(tmp_path / "narrow")
    variances = np.var(list(free.values()), axis=0)
    assert (np.diff(variances) <= 1e-6).all()
    assert all(np.allclose(np.abs(narrow[w]), np.abs(found[w][:3]), atol=1e-5) for w in counts)


def test_distill_reads_the_same_words_from_every_kind_of_file(tmp_path, encoder, texts):
    expected = distill(encoder, texts, tmp_path / "lines").n_words
    turns = [{"speaker": "AB"[n % 2], "text": text} for n, text in enumerate(TURNS)]
    files = {
        "lines.txt.gz": gzip.compress(TEXTS.encode()),
        "texts.jsonl": "".join(json.dumps({"body": text}) + "\n" for text in TURNS).encode(),
        "talks.jsonl": json.dumps({"turns": turns}).encode(),
        "texts.csv": "".join(f"{text}\n" for text in ("body", *TURNS)).encode(),
        "talk.txt": f"text:{TURNS[0]}\tlabels:{TURNS[1]}\ntext:{TURNS[2]}\tlabels:it".encode(),
        "wide.csv": "".join(f"{text}\n" for text in ("body", *TURNS)).encode("utf-16-le"),
        "said.txt": "".join(f"{'AB'[n % 2]}: {text}\n" for n, text in enumerate(TURNS)).encode(),
    }
    forms = {"talk.txt": "parlai", "said.txt": "speaker-lines"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        options = {"text_field": "body"}
        if name in forms:  # Not silently read as plain lines.
            with pytest.raises(DialogError, match=f"use --format {forms[name]}"):
                distill(encoder, tmp_path / name, tmp_path / "none")
            options = {"format": forms[name]}
        if name == "wide.csv":
            with pytest.raises(DialogError, match="--encoding utf-16-le"):
                distill(encoder, tmp_path / name, tmp_path / "none", **options)
            options["encoding"] = "utf-16-le"
        done = distill(encoder, tmp_path / name, tmp_path / f"of {name}", **options)
        assert done.n_words == expected, name
        assert table(done.folder).keys() == table(tmp_path / "lines").keys()
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(DialogError, match="empty.txt  has no words"):
        distill(encoder, tmp_path / "empty.txt", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_distilled_tables_split_texts_like_split_words(tmp_path, encoder):
    (tmp_path / "texts.txt").write_text("\n".join(SCRIPTS))
    distill(encoder, tmp_path / "texts.txt", tmp_path / "words")
    tokenizer = PretrainedTokenizer(str(tmp_path / "words"))
    for text in SCRIPTS:
        assert tokenizer.pieces(text) == split_words(normalise(text, "NFC", True))


def test_distill_refuses_to_replace_files(tmp_path, encoder, texts):
    first = distill(encoder, texts, tmp_path / "words")
    before = table(tmp_path / "words")
    for other in (tmp_path / "words", encoder, texts):
        with pytest.raises(OutputError, match="already exists. Choose another name."):
            distill(encoder, texts, other)
    assert before.keys() == table(tmp_path / "words").keys()
    # The encoder may be a distilled table.
    assert distill(tmp_path / "words", texts, tmp_path / "second").n_words == first.n_words


def test_distill_needs_a_width(tmp_path, encoder, texts):
    for width in (0, -1):
        with pytest.raises(DialogError, match=f"^width = {width}, expected 1 or more$"):
            distill(encoder, texts, tmp_path / "words", width=width)
    assert not (tmp_path / "words").exists()


def test_distill_that_is_interrupted_leaves_nothing(tmp_path, encoder, texts, monkeypatch):
    def interrupt(tensors):
        raise KeyboardInterrupt

    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("safetensors.numpy.save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        distill(encoder, texts, tmp_path / "words")
    assert sorted(tmp_path.rglob("*")) == before


def test_model2vec_reads_a_distilled_table(tmp_path, encoder, texts):
    model2vec = pytest.importorskip("model2vec")
    distill(encoder, texts, tmp_path / "words")
    theirs = model2vec.StaticModel.from_pretrained(tmp_path / "words")
    ours = text_encoder(read_folder(str(tmp_path / "words")))
    ours.initialize()
    found = encode(ours, *PretrainedTokenizer(str(tmp_path / "words")).encode_many(SCRIPTS + TURNS))
    assert np.allclose(theirs.encode(SCRIPTS + TURNS), found, atol=1e-5)
