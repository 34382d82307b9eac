import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.data.special_tokens import N_SPECIAL, UNKNOWN
from thincdialog.data.tokenizers import (
    ByteTokenizer,
    CharacterTokenizer,
    HashNgramTokenizer,
    SubwordTokenizer,
    WhitespaceTokenizer,
    WordNgramTokenizer,
    WordTokenizer,
)
from thincdialog.errors import DataError, ModelError
from thincdialog.registry import registry

TEXTS = ["Hello there, how are you?", "I'm fine, thank you.", "你好吗", "naïve café"] * 3
NAMES = ["Bytes", "Characters", "HashNgrams", "Subwords", "Whitespace", "WordNgrams", "Words"]
SETTINGS = {"Subwords": {"size": 300}}
ENCODABLE = st.text(st.characters(exclude_categories=["Cs"]))


def make(name, **settings):
    tokenizer = registry.tokenizers.get(f"thincdialog.{name}.v1")(**settings)
    tokenizer.build(TEXTS)
    return tokenizer


@pytest.fixture(scope="module")
def built():
    return {name: make(name, **SETTINGS.get(name, {})) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text() | st.sampled_from([*TEXTS, "", "\x00", "\ud800 x", "a\r\nb", "▁"]))
@settings(max_examples=50)
def test_tokenizer_ids_are_in_range(built, name, text):
    tokenizer = built[name]
    ids = tokenizer.encode(text)
    assert ids.dtype == np.int32 and ids.ndim == 1
    assert len(ids) == len(tokenizer.pieces(text))
    assert all(each == UNKNOWN or N_SPECIAL <= each < tokenizer.n_ids for each in ids)
    tokenizer.decode(ids)


@pytest.mark.parametrize("name", NAMES)
def test_tokenizer_is_saved_and_loaded_or_pickled(built, tmp_path, name):
    tokenizer = built[name]
    tokenizer.to_disk(tmp_path / "tokenizer")
    loaded = type(tokenizer)(**SETTINGS.get(name, {}))
    loaded.from_disk(tmp_path / "tokenizer")
    for copied in (loaded, pickle.loads(pickle.dumps(tokenizer))):
        assert copied.n_ids == tokenizer.n_ids
        for text in TEXTS[:4]:
            assert copied.encode(text).tolist() == tokenizer.encode(text).tolist()


@pytest.mark.parametrize("name", ["Characters", "Subwords", "Whitespace", "WordNgrams", "Words"])
def test_tokenizer_without_texts_is_an_error(tmp_path, name):
    tokenizer = registry.tokenizers.get(f"thincdialog.{name}.v1")()
    assert tokenizer.needs_texts
    with pytest.raises(DataError):
        tokenizer.build(["", ""])
    for unbuilt in (lambda: tokenizer.n_ids, lambda: tokenizer.encode("a")):
        with pytest.raises(ValueError, match=r"call build\(\) first"):
            unbuilt()
    with pytest.raises(ModelError, match="cannot read"):
        tokenizer.from_disk(tmp_path)


@given(any_text=st.text(), known=st.text(sorted(set("".join(TEXTS)))))
def test_bytes_and_characters_decode_to_the_same_texts(any_text, known):
    for tokenizer, text in (
        (ByteTokenizer(), any_text),
        (make("Characters"), known),
    ):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text and UNKNOWN not in ids


def test_words_that_are_unknown_are_shown_as_such():
    plain = make("Words")
    assert plain.encode("thank thee").tolist()[1] == UNKNOWN
    assert plain.decode(plain.encode("thank thee!")) == "thank <unk> <unk>"


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
@given(text=ENCODABLE.filter(lambda text: "\u2581" not in text))
@settings(max_examples=50)
def test_subwords_with_byte_fallback_give_every_text_back(built, algorithm, text):
    key = f"Subwords {algorithm}"
    if key not in built:
        built[key] = make("Subwords", size=300, algorithm=algorithm, lower=False, normalize="none")
    assert built[key].decode(built[key].encode(text)) == text


def test_subwords_are_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        make("Subwords", size=300).to_disk(tmp_path / name)
    for file in ("subwords.model", "subwords.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"", lambda data: b"x" + data]
)
def test_subwords_damaged_on_disk_are_an_error(built, tmp_path, damage):
    built["Subwords"].to_disk(tmp_path)
    path = tmp_path / "subwords.model"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match="subwords are damaged"):
        SubwordTokenizer(size=300).from_disk(tmp_path)


def test_subwords_too_few_for_the_characters_are_an_error():
    """The error names the setting and the size that is enough."""
    words = r"cannot learn 258 subwords .*: their characters need (\d+): raise \[tokenizer\] size$"
    with pytest.raises(DataError, match=words) as error:
        SubwordTokenizer(size=258).build(["abcdefgh" * 9])
    (size,) = re.findall(r"need (\d+)", str(error.value))
    SubwordTokenizer(size=int(size)).build(["abcdefgh" * 9])


def test_words_limits_and_normal_form():
    tokenizer = WordTokenizer(max_size=2)
    tokenizer.build(["a a b b c"])
    assert tokenizer.n_ids == N_SPECIAL + 2
    assert tokenizer.encode("a b c").tolist() == [N_SPECIAL, N_SPECIAL + 1, UNKNOWN]
    tokenizer = WordTokenizer()
    tokenizer.build(["CAFÉ"])
    assert tokenizer.encode("cafe\u0301").tolist() == [N_SPECIAL]
    exact = WordTokenizer(lower=False, normalize="none")
    exact.build(["CAFÉ"])
    assert exact.encode("café").tolist() == [UNKNOWN]


@pytest.mark.parametrize(
    "klass, settings, message",
    [
        (WordTokenizer, {"min_freq": 0}, "min_freq = 0, expected 1 or more"),
        (CharacterTokenizer, {"max_size": -1}, "max_size = -1, expected 0 or more"),
        (WhitespaceTokenizer, {"min_freq": -5}, "min_freq = -5"),
        (HashNgramTokenizer, {"n_rows": 0}, "n_rows = 0"),
        (HashNgramTokenizer, {"ngrams": 0}, "ngrams = 0"),
        (HashNgramTokenizer, {"char_ngrams": [3]}, r"char_ngrams = \[3\]"),
        (HashNgramTokenizer, {"char_ngrams": [5, 3]}, "expected .shortest, longest"),
        (WordNgramTokenizer, {"min_freq": 0}, "min_freq = 0, expected 1 or more"),
        (WordNgramTokenizer, {"n_rows": 0}, "n_rows = 0"),
        (SubwordTokenizer, {"size": 256}, "size = 256, expected 258 or more"),
    ],
)
def test_tokenizer_settings_out_of_range_are_errors(klass, settings, message):
    with pytest.raises(ValueError, match=message):
        klass(**settings)


# --- hashed n-grams -----------------------------------------------------------------


def test_hash_ngrams_come_word_by_word():
    tokenizer = HashNgramTokenizer(ngrams=3, char_ngrams=[2, 3])
    assert tokenizer.pieces("My cat sat") == [
        *["my", "<m", "my", "y>", "<my", "my>"],
        *["cat", "my cat", "<c", "ca", "at", "t>", "<ca", "cat", "at>"],
        *["sat", "cat sat", "my cat sat", "<s", "sa", "at", "t>", "<sa", "sat", "at>"],
    ]


@given(st.lists(st.sampled_from("a b cc dd don't 好".split()), max_size=8), st.integers(1, 4))
def test_hash_ngrams_are_equal_if_their_pieces_are(words, ngrams):
    tokenizer = HashNgramTokenizer(n_rows=1 << 30, ngrams=ngrams, char_ngrams=[2, 4])
    text = " ".join(words)
    ids = tokenizer.encode(text).tolist()
    # A word and the same characters within another word are different features.
    pieces = tokenizer.pieces(text)
    assert len(ids) == len(pieces)
    whole = HashNgramTokenizer(n_rows=1 << 30, ngrams=ngrams)
    word_ids, word_pieces = whole.encode(text).tolist(), whole.pieces(text)
    assert len(set(zip(word_ids, word_pieces))) == len(set(word_ids)) == len(set(word_pieces))
    assert set(word_ids) <= set(ids)


def test_hash_ngrams_spread_over_their_rows():
    tokenizer = HashNgramTokenizer(n_rows=1024, ngrams=2)
    ids = tokenizer.encode(" ".join(f"w{i}" for i in range(4000)))
    for part in (ids[1::2], ids[2::2]):  # words, and pairs of words
        counts = np.bincount(part - N_SPECIAL, minlength=1024)
        # Chi-square has a mean of 1023 and a deviation of 45.
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 1300


def murmur3(data, seed):
    """MurmurHash3_x86_32, from its description, for little-endian words."""
    mask, value = 0xFFFFFFFF, seed
    for start in range(0, len(data), 4):
        block = data[start : start + 4]
        k = int.from_bytes(block, "little") * 0xCC9E2D51 & mask
        k = ((k << 15 | k >> 17) & mask) * 0x1B873593 & mask
        value ^= k
        if len(block) == 4:
            value = ((value << 13 | value >> 19) * 5 + 0xE6546B64) & mask
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    return value ^ value >> 16


@given(st.text(), st.text())
def test_hash_ngrams_have_the_documented_rows(first, second):
    # Saved models depend on these rows, so a change needs a new version of the tokenizer.
    tokenizer = HashNgramTokenizer(n_rows=1009, ngrams=2)
    words = tokenizer.pieces(f"{first} {second}")
    if len(words) != 3:
        words = ["hello", "you", "hello you"]
    a, b = (murmur3(word.encode("utf-8", "surrogatepass"), 1) for word in words[:2])
    pair = (a * 0x9E3779B97F4A7C15 + b) * 0x9E3779B97F4A7C15 % 2**64 >> 32
    expected = [N_SPECIAL + value % 1009 for value in (a, b, pair)]
    assert tokenizer.encode(f"{words[0]} {words[1]}").tolist() == expected


# --- words and hashed n-grams -------------------------------------------------------


def test_word_ngrams_only_known_words_have_their_own_rows():
    tokenizer = WordNgramTokenizer(n_rows=1000, mark_end=False, min_freq=2)
    tokenizer.build(["the cat sat", "the cat"])
    first = N_SPECIAL + 1000
    assert tokenizer.n_ids == first + 2
    assert tokenizer.encode("the cat").tolist()[:2] == [first + 1, first]
    hashes = HashNgramTokenizer(n_rows=1000)
    for text in ("the cat", "cat cat the", "the sat the"):
        ids, pieces = tokenizer.encode(text), tokenizer.pieces(text)
        # N-grams with unknown words are hashed, too, in the same way as without a vocabulary.
        hashed = dict(zip(hashes.pieces(text), hashes.encode(text).tolist()))
        for each, piece in zip(ids.tolist(), pieces):
            assert each == hashed[piece] if " " in piece else each >= first
    assert tokenizer.pieces("the sat the") == ["the", "the sat", "the", "sat the"]
    assert tokenizer.decode(tokenizer.encode("the sat, cat")) == "the cat"


def test_word_ngrams_mark_the_end_of_a_text():
    tokenizer = WordNgramTokenizer(n_rows=1 << 28, char_ngrams=[2, 2])
    tokenizer.build(["a b"])
    end = N_SPECIAL + (1 << 28)
    assert tokenizer.pieces("a b")[-2:] == ["</s>", "b </s>"]
    assert tokenizer.encode("a b")[-2] == end == tokenizer.encode("")[0]
    assert tokenizer.encode("a b")[-1] != tokenizer.encode("b a")[-1]
    assert len(tokenizer.encode("")) == 1 and tokenizer.n_ids == end + 3
    assert tokenizer.decode(tokenizer.encode("a b")) == "a b"


def test_word_ngrams_keep_the_most_frequent_words():
    tokenizer = WordNgramTokenizer(max_size=2)
    tokenizer.build(["c c c", "b b", "a"])
    assert tokenizer.vocabulary.tokens == ["c", "b"]
    assert tokenizer.pieces("a b") == ["b", "a b", "</s>", "b </s>"]
