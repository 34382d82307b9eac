"""Files of word vectors in all their forms, intact and damaged."""

import gzip
import io
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.errors import DataError
from thincdialog.formats.word_vectors import read_word_vectors

WORDS = ["the", "caf\u00e9", "\u4f60\u597d", ",", "rare"]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype("f")


def glove(words=WORDS, vectors=VECTORS):
    rows = zip(words, vectors)
    return "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows).encode()


def word2vec(words=WORDS, vectors=VECTORS):
    return f"{len(words)} {vectors.shape[1]}\n".encode() + glove(words, vectors)


def fast_text(words=WORDS, vectors=VECTORS):
    return word2vec(words, vectors).replace(b"\n", b" \n").replace(b" \n", b"\n", 1)


def binary(words=WORDS, vectors=VECTORS, end=b"\n"):
    head = f"{len(words)} {vectors.shape[1]}\n".encode()
    rows = zip(words, vectors)
    return head + b"".join(f"{word} ".encode() + row.tobytes() + end for word, row in rows)


def plain_binary(words=WORDS, vectors=VECTORS):
    """Make a binary file without line ends, as gensim writes it."""
    return binary(words, vectors, end=b"")


FORMS = [glove, word2vec, fast_text, binary, plain_binary]


def read(path, data, wanted=WORDS, width=6):
    path.write_bytes(data)
    rows = read_word_vectors(str(path), {word.encode() for word in wanted}, width)
    return {word.decode(): vector for word, vector in rows}


def zipped(data):
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr("vectors.txt", data)
    return file.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zipped])
@pytest.mark.parametrize("form", FORMS)
def test_word_vectors_of_every_form_are_the_same(tmp_path, form, pack):
    found = read(tmp_path / "vectors", pack(form()))
    assert list(found) == WORDS
    np.testing.assert_allclose(np.stack(list(found.values())), VECTORS, rtol=1e-6)
    assert list(read(tmp_path / "vectors", pack(form()), ["rare", "none"])) == ["rare"]


def test_word_vectors_of_many_words_are_found_anywhere_in_a_file(tmp_path):
    """The words are also found in later chunks of the file. A space or a line end may be part of a
    number."""
    words = [f"w{n}" for n in range(60_000)]
    vectors = np.arange(6 * len(words), dtype="f").reshape(-1, 6)
    for form in (binary, plain_binary):
        found = read(tmp_path / "vectors", form(words, vectors), words[::7])
        assert list(found) == words[::7]
        assert np.stack(list(found.values())).tobytes() == vectors[::7].tobytes()


def test_word_vectors_of_words_with_spaces_are_ignored(tmp_path):
    """GloVe's largest file has a few words with spaces."""
    data = glove(["the", ". .", "rare"], VECTORS[:3])
    assert list(read(tmp_path / "vectors", data, [".", "rare"])) == ["rare"]


CUT = r"ends after \d of 5 words: it is cut off"
DAMAGED = {
    "nothing": (b"", "begins with ''; expected word2vec"),
    "text": (b"It was a dark and stormy night.\n", ":1  begins with 'It was a dark"),
    "other width": (glove(vectors=VECTORS[:, :3]), "has vectors of width 3, but .* width 6: set"),
    "other width said": (word2vec(vectors=VECTORS[:, :3]), "has vectors of width 3"),
    "cut text": (word2vec()[: len(word2vec()) * 2 // 3].rpartition(b"\n")[0], CUT),
    "cut binary": (binary()[:-10], CUT),
    "short line": (glove() + b"more 1 2 3\n", ":6  3 numbers after 'more', expected 6"),
    "no number": (glove() + b"rare 1 2 x 4 5 6\n", ":6  could not convert string to float: b?'x'"),
    "not finite": (word2vec() + b"rare 1 2 nan 4 5 6\n", ":7  a number is not finite"),
    "too large": (glove() + b"rare 1 2 3e99 4 5 6\n", ":6  a number is not finite, or too large"),
    "infinite": (binary(vectors=VECTORS * np.float32("inf")), "not finite"),
    "cut gzip": (gzip.compress(glove())[:-12], "the compressed data is damaged or cut off"),
    "no gzip": (b"\x1f\x8bnothing", "the compressed data is damaged or cut off"),
    "zip": (b"PK\x03\x04...", "the compressed data is damaged or cut off"),
    "model": (b"\xba\x16\x4f\x2f\x0c\x00", "is a fastText model .* give its .vec"),
    "pickle": (b"\x80\x02}q\x00.", "is a Python pickle, which could run code"),
    "one line": (glove() + b"x" * (1 << 21), "a line has 1,048,576 bytes or more"),
    "no words": (b"5 6\n" + b"\xff" * 10_000, "word 1 has more than 4,096 bytes"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_word_vectors_damaged_is_one_clear_error(tmp_path, case):
    data, expected = DAMAGED[case]
    with pytest.raises(DataError, match=expected):
        read(tmp_path / "vectors", data)


def test_word_vectors_in_a_pipe_or_a_folder_are_an_error(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(DataError, match="is not a plain file"):
            list(read_word_vectors(str(path), set(), 6))


def test_word_vectors_without_a_file_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match="nowhere.txt  file not found"):
        list(read_word_vectors(str(tmp_path / "nowhere.txt"), set(), 6))


@given(st.sampled_from(FORMS), st.integers(0, 200), st.binary(max_size=8), st.integers(1, 8))
def test_word_vectors_of_any_bytes_are_read_or_refused(tmp_path_factory, form, at, bytes_, width):
    data = form()
    path = tmp_path_factory.getbasetemp() / "any"
    try:
        found = read(path, data[:at] + bytes_ + data[at + 1 :], width=width)
    except DataError:
        return
    assert all(vector.shape == (width,) for vector in found.values())
