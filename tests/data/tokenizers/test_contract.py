import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from murmurhash.mrmr import hash_bytes

from thincdialog.contract import CodeError
from thincdialog.data.special_tokens import N_SPECIAL
from thincdialog.data.tokenizers import HashNgramTokenizer, Tokenizer, WordTokenizer
from thincdialog.data.tokenizers.contract import many_encoder_of
from thincdialog.data.tokenizers.hash_ngrams import _JOIN
from thincdialog.data.tokenizers.vocabulary_tokenizer import HasVocabulary
from thincdialog.data.tokenizers.word_bytes import find_words
from thincdialog.data.tokenizers.word_table import SEED, WordTable
from thincdialog.data.words import normalise, split_words
from thincdialog.registry import registry

TEXTS = ["Hello there, how are you?", "It's 1,000.5 $ (or 6)!", "你好吗", "naïve café’s", "Σίσυφος"]
MANY = [*TEXTS, "", "x" * 63, "y" * 64, "é" * 40, "z" * 200, "it's what it is . " * 80]
# Characters at which words begin or end, and ASCII and other characters.
CHARACTERS = (
    "aZ09_ '.,-!\n\x1c\x00\x7f\x85\u3000éÀß’\u0301\u200d\u200bşΣσİ好かกา🏽👍🇩🇪\ud800\udc00ﬁ"
)
ANY_TEXTS = st.lists(st.text(st.sampled_from(CHARACTERS)) | st.text() | st.sampled_from(TEXTS))
SETTINGS = {
    "Bytes": [{}],
    "Characters": [{}],
    "HashNgrams": [
        {"n_rows": 65536, "ngrams": 1},
        {"n_rows": 1009, "ngrams": 2, "lower": False},
        {"n_rows": 1 << 30, "ngrams": 4, "char_ngrams": [2, 4], "normalize": "NFKC"},
    ],
    "Subwords": [{"size": 300}],
    "Whitespace": [{}],
    "WordNgrams": [
        {"n_rows": 65536},
        {"n_rows": 10007, "ngrams": 3, "mark_end": False, "min_freq": 2},
        {"n_rows": 10007, "ngrams": 1, "char_ngrams": [3, 5], "normalize": "none"},
    ],
    "Words": [{}, {"min_freq": 2, "lower": False}, {"max_size": 3}],
}
CASES = [(name, number) for name, all_of in SETTINGS.items() for number in range(len(all_of))]
EVERY = pytest.mark.parametrize("name, number", CASES)


@pytest.fixture(scope="module")
def tokenizers():
    made = {}
    for name, number in CASES:
        made[name, number] = registry.tokenizers.get(f"thincdialog.{name}.v1")(
            **SETTINGS[name][number]
        )
        made[name, number].build([*MANY, *TEXTS[:2]])
    return made


def hashed(tokenizer, text):
    """Return the ids of hashed n-grams of a text, computed word by word."""

    def hash_of(piece, seed):
        return hash_bytes(piece.encode("utf-8", "surrogatepass"), seed) & 0xFFFFFFFF

    ids, before = [], []
    for word in tokenizer._split(text):
        value = hash_of(word, SEED)
        if not isinstance(tokenizer, HasVocabulary):
            ids.append(value % tokenizer.n_rows + N_SPECIAL)
        elif word in tokenizer._ids:
            ids.append(tokenizer._ids[word])
        before = [(each * _JOIN + value) * _JOIN % (1 << 64) for each in before]
        values = [each >> 32 for each in before]
        values += [hash_of(piece, SEED + 1) for piece in tokenizer._char_pieces(word)]
        ids += [each % tokenizer.n_rows + N_SPECIAL for each in values]
        before = [value, *before][: tokenizer.ngrams - 1]
    return ids


def check(tokenizer, texts):
    """Check that ``encode_many`` returns the ids of one text after the other."""
    expected = [tokenizer.encode(text).tolist() for text in texts]
    if isinstance(tokenizer, HashNgramTokenizer):
        assert expected == [hashed(tokenizer, text) for text in texts]
    ids, lengths = tokenizer.encode_many(texts)
    assert ids.dtype == np.int32 and lengths.dtype == np.int64
    assert lengths.tolist() == list(map(len, expected))
    assert ids.tolist() == [each for ids in expected for each in ids]


@EVERY
@given(texts=ANY_TEXTS, is_short=st.booleans())
def test_contract_gives_the_ids_of_encode(tokenizers, name, number, texts, is_short):
    check(tokenizers[name, number], texts if is_short else [*texts, *MANY, *texts[::-1]])


@EVERY
def test_contract_for_no_texts_and_for_several_chunks(tokenizers, name, number):
    many = [f"{text} n{i} {i}.5" for i in range(50) for text in MANY]
    for texts in ([], [""], [" " * 3000], ["", "\n" * 3000, ""], many):
        check(tokenizers[name, number], texts)


def test_contract_with_a_bounded_cache_gives_the_same_ids(monkeypatch):
    make = registry.tokenizers.get("thincdialog.HashNgrams.v1")
    expected = [make(char_ngrams=[3, 5]).encode(text).tolist() for text in MANY]
    monkeypatch.setattr("thincdialog.data.tokenizers.hash_ngrams._MAX_WORDS", 2)
    tokenizer = make(char_ngrams=[3, 5])
    for _ in range(2):
        assert [tokenizer.encode(text).tolist() for text in MANY] == expected
    check(tokenizer, MANY)


def test_contract_follows_the_vocabulary():
    tokenizer = WordTokenizer()
    for texts in (["a b c"], ["c", "it what"], ["nothing of it"]):
        tokenizer.build(texts)
        check(tokenizer, MANY)


@given(ANY_TEXTS, st.sampled_from(["NFC", "NFKC", "none"]), st.booleans(), st.booleans())
def test_words_of_many_texts_are_the_same_as_of_each_text(texts, form, lower, is_marked):
    found = find_words(texts, form, lower, "</s>" if is_marked else "")
    words = [split_words(normalise(text, form, lower)) + ["</s>"] * is_marked for text in texts]
    assert found.n_words.tolist() == list(map(len, words))
    expected = [word.encode("utf-8", "surrogatepass") for each in words for word in each]
    assert found.words() == expected
    assert found.hashes(7).tolist() == [hash_bytes(word, 7) & 0xFFFFFFFF for word in expected]


@pytest.mark.parametrize("before, after", [("w", ""), ("w" * 15, ""), ("w", "w" * 15)])
def test_words_with_the_same_hash_are_distinguished(before, after):
    seen, pairs = {}, []
    for i in range(300_000):
        word = f"{before}{i:06}{after}"
        other = seen.setdefault(hash_bytes(word.encode(), SEED), word)
        if other != word:
            pairs.append((other, word))
    (a, b), (c, d), (e, f) = pairs[:3]
    known = {a: 3, b: 1, c: 4, f: 0}
    words = find_words([" ".join([d, a, f, e, c, b])], "none", False)
    found = WordTable(known).find(words, words.hashes(SEED))
    assert found.tolist() == [known.get(word, -1) for word in [d, a, f, e, c, b]]


def test_words_of_any_length_are_found():
    known = {("abcdefgh" * 12)[:size]: size for size in range(1, 97)}
    words = find_words([" ".join(known), " ".join(f"{word}X" for word in known)], "none", False)
    found = WordTable(known).find(words, words.hashes(SEED))
    assert found.tolist() == [*known.values(), *[-1] * len(known)]


# --- custom tokenizers ---------------------------------------------------------------


class Letters(WordTokenizer):
    """A subclass of the package's tokenizer that overrides ``encode``."""

    def encode(self, text):
        return np.full(len(text), 20)

    n_ids = 21


class Own(Letters):
    given = None

    def encode_many(self, texts):
        return self.given


def test_contract_of_a_custom_tokenizer_uses_its_encode():
    ids, lengths = many_encoder_of(Letters())(["abc", "", "x" * 3000])
    assert ids.tolist() == [20] * 3003 and lengths.tolist() == [3, 0, 3000]
    assert ids.dtype == np.int32
    Letters.n_ids = 20
    with pytest.raises(CodeError, match=r"Letters.encode\(\) returned a ndarray .* for 'abc', but"):
        many_encoder_of(Letters())(["abc"])
    Letters.n_ids = 21


def test_contract_of_a_custom_encode_many_is_checked():
    tokenizer = Own()
    encode = many_encoder_of(tokenizer)
    tokenizer.given = np.array([20, 0, 1]), np.array([1, 2])
    ids, lengths = encode(["a", "b"])
    assert ids.tolist() == [20, 0, 1] and lengths.tolist() == [1, 2]
    short, beyond, long = ([20], [1]), ([20, 21], [1, 1]), ([20, 20], [1, 2])
    for given_ids, given_lengths in (
        short, beyond, long, ([20, 20], [2.0, 0.0]), ([20, 20], [3, -1])
    ):  # fmt: skip
        tokenizer.given = np.array(given_ids), np.array(given_lengths)
        with pytest.raises(CodeError, match=r"Own.encode_many\(\) returned .* for 2 texts, but"):
            encode(["a", "b"])
    tokenizer.given = None
    with pytest.raises(CodeError, match="None for 2 texts, but should return the ids of all"):
        encode(["a", "b"])


def test_contract_of_a_tokenizer_that_only_encodes():
    class Plain(Tokenizer):
        def encode(self, text):
            return np.arange(len(text))

    ids, lengths = Plain().encode_many(["ab", "", "c"])
    assert ids.tolist() == [0, 1, 0] and lengths.tolist() == [2, 0, 1]
