import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.data import Vocabulary
from thincdialog.errors import DataError, ModelError

TEXTS = ["b b a", "a c", "d"]


def test_vocabulary_is_ordered_by_count_and_token_and_limited():
    vocabulary = Vocabulary.build(TEXTS, str.split)
    assert (vocabulary.tokens, vocabulary.counts) == (["a", "b", "c", "d"], [2, 2, 1, 1])
    assert Vocabulary.build(reversed(TEXTS), str.split).tokens == vocabulary.tokens
    assert Vocabulary.build(TEXTS, str.split, min_freq=2).tokens == ["a", "b"]
    assert Vocabulary.build(TEXTS, str.split, max_size=3).tokens == ["a", "b", "c"]


@pytest.mark.parametrize("texts", [[], ["", " "], ["x y z"]])
def test_vocabulary_without_frequent_tokens_is_an_error(texts):
    with pytest.raises(DataError, match="the vocabulary would be empty.*min_freq is 2"):
        Vocabulary.build(texts, str.split, min_freq=2)


def test_vocabulary_build_reports_its_progress():
    told = []
    Vocabulary.build(["a"] * 2500, str.split, progress=told.append)
    assert told == [1000, 2000, 2500]


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.data())
def test_vocabulary_is_saved_and_loaded(tmp_path_factory, tokens, data):
    counts = [data.draw(st.integers(1, 10**12)) for _ in tokens]
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    Vocabulary(list(zip(tokens, counts))).to_disk(path)
    loaded = Vocabulary.from_disk(path)
    assert (loaded.tokens, loaded.counts) == (tokens, counts)


def test_vocabulary_saves_any_token(tmp_path):
    tokens = ["a\nb", "\r", "\x85", "\u2028", "\x00", "\ud800", '"', "\\", "语"]
    Vocabulary([(token, 1) for token in tokens]).to_disk(tmp_path / "v")
    assert Vocabulary.from_disk(tmp_path / "v").tokens == tokens
    assert "语" in (tmp_path / "v").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1], lambda data: data[: len(data) // 2], lambda data: b"",
        lambda data: data.replace(b"hello", b"hullo"), lambda data: b"\x80\x04pickle" + data,
        lambda data: b"[]\n", lambda data: data + b"[]\n",
    ],
)  # fmt: skip
def test_vocabulary_damaged_on_disk_is_an_error(tmp_path, damage):
    path = tmp_path / "vocabulary.jsonl"
    Vocabulary([("hello", 2), ("you", 1)]).to_disk(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match="vocabulary is damaged"):
        Vocabulary.from_disk(path)
    with pytest.raises(ModelError, match="cannot read the vocabulary"):
        Vocabulary.from_disk(tmp_path / "none")
