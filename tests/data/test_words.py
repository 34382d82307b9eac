import gzip
import json
import unicodedata
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.data.words import join_words, normalise, split_words


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Don't stop, it's 1,000.5!", ["Don't", "stop", ",", "it's", "1,000.5", "!"]),
        ("l’été... (x_y)", ["l’été", ".", ".", ".", "(", "x_y", ")"]),
        ("'quoted' end.", ["'", "quoted", "'", "end", "."]),
        ("हिन्दी में क्या है?", ["हिन्दी", "में", "क्या", "है", "?"]),
        ("مُحَمَّد می‌خواهم", ["مُحَمَّد", "می‌خواهم"]),
        ("Vie\u0302\u0323t", ["Vie\u0302\u0323t"]),
        ("我喜欢Avatar2。", ["我", "喜", "欢", "Avatar2", "。"]),
        ("ง่าย", ["ง่", "า", "ย"]),
        ("한국어 말", ["한국어", "말"]),
        ("👨‍👩‍👧👍🏽❤️🇩🇪🇫🇷1️⃣", ["👨‍👩‍👧", "👍🏽", "❤️", "🇩🇪", "🇫🇷", "1️⃣"]),
        ("a\u200bb\ufeffc\u3000d", ["a", "b", "c", "d"]),
        ("x\x00y\ud800", ["x", "\x00", "y", "\ud800"]),
        (" \n\t", []),
        ("", []),
    ],
)
def test_words_of_many_scripts(text, expected):
    assert split_words(text) == expected


@given(st.text())
def test_words_lose_only_spaces_and_format_characters(text):
    words = split_words(text)
    dropped = [c for c in text if not c.isspace() and unicodedata.category(c) != "Cf"]
    assert [c for c in "".join(words) if unicodedata.category(c) != "Cf"] == dropped


@given(st.text())
def test_words_joined_split_into_the_same_words(text):
    words = split_words(text)
    assert split_words(join_words(words)) == words


@given(st.text())
def test_words_of_plain_text_do_not_depend_on_the_pattern(text):
    # Texts that are pure ASCII take a faster path. One more character at the end prevents this.
    plain = text.encode("ascii", "ignore").decode("ascii")
    assert split_words(plain) == split_words(f"{plain} é")[:-1]


def test_words_joined_read_well():
    words = ["Hello", ",", "it's", "$", "5", "(", "or", "6", ")", "!", "我", "喜", "。", "ok"]
    assert join_words(words) == "Hello, it's $5 (or 6)! 我喜。ok"


@given(st.text(), st.sampled_from(["NFC", "NFKC"]), st.booleans())
def test_normalise_makes_equal_what_is_canonically_equal(text, form, lower):
    once = normalise(text, form, lower)
    assert normalise(unicodedata.normalize("NFD", text), form, lower) == once
    assert normalise(once, form, lower) == once
    assert normalise("E\u0301", "none", False) == "E\u0301"
    assert normalise("E\u0301", "none", True) == "e\u0301"


def is_mark(character):
    return unicodedata.category(character)[0] == "M"


@pytest.mark.slow
@pytest.mark.parametrize("language", "ar de el en es hi ro ru th tr vi zh".split())
def test_words_of_real_texts_keep_their_marks(data, language):
    path = data / "xquad_multilingual" / f"{language}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["context"] for line in islice(file, 0, None, 5)]
    n_words = n_characters = 0
    for text in texts:
        clean = normalise(text, "NFC", True)
        words = split_words(clean)
        assert split_words(join_words(words)) == words
        # A word starts with a mark only if the mark follows a space in the text.
        alone = sum(a.isspace() and is_mark(b) for a, b in zip(" " + clean, clean))
        assert sum(is_mark(word[0]) for word in words) == alone
        n_words += len(words)
        n_characters += sum(map(len, words))
    unspaced = language in ("th", "zh")
    assert (n_characters / n_words < 2.0) == unspaced


def test_words_of_chinese_dialogue_are_characters(data):
    with gzip.open(data / "kdconv_zh_devtest" / "test.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [turn["text"] for line in islice(file, 50) for turn in json.loads(line)["turns"]]
    words = [word for text in texts for word in split_words(text)]
    han = [word for word in words if any("\u4e00" <= c <= "\u9fff" for c in word)]
    assert len(han) > 10_000
    assert all(len(word) == 1 for word in han)
    assert sum(map(len, han)) == sum("\u4e00" <= c <= "\u9fff" for text in texts for c in text)
