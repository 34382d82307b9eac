"""Begins an embedding table with word vectors from a file, or from a table's folder."""

import os
from typing import Callable, Collection, Iterator, Sequence

import numpy as np
from thinc.api import Ops
from thinc.types import Floats2d
from thinc.util import partial

from ..errors import DataError
from ..formats.word_vectors import Row, check_width, read_word_vectors
from ..layers.word_vectors import word_vectors_init
from ..registry import registry
from .encoder import encode, text_encoder
from .families import TABLE
from .folder import read_folder
from .tokenizer import PretrainedTokenizer

_WORDS_AT_ONCE = 1024


@registry.initializers("thincdialog.WordVectors.v1")
def configure_word_vectors(path: str) -> Callable[[Ops, tuple], Floats2d]:
    """A table of embeddings that begins with word vectors: from a file of word2vec (text or
    binary), fastText (.vec) or GloVe, also gzipped, or from the folder of a table in the layout
    of Model2Vec or WordLlama, such as ``thincdialog distill`` writes. The other rows are
    drawn, and all vectors are scaled by one factor to be as large on average. All rows are trained
    further.

    The table must be as wide as the vectors of a file; of those of a folder, it takes the first
    columns. Words are looked up as the tokenizer cuts them, so that its `lower` decides on the
    case. A folder's tokenizer cuts a word into pieces, and its vector is their mean. Of a
    tokenizer with hashed rows, a word is any of the training data, which is read once more;
    n-grams and pieces of words have none.

    path (str): The file or folder. It is read when a training begins, unless `init_from` gives
        the table; a saved model needs it no more.
    RETURNS (Callable): ``init(ops, shape) -> table``.
    """
    read = read_table if os.path.isdir(path) else read_word_vectors
    return partial(word_vectors_init, read, path)


def read_table(path: str, wanted: Collection[bytes], width: int) -> Iterator[Row]:
    """Read the vectors of words from a folder's table, as ``read_word_vectors`` does from a file.

    RAISES (DialogError): If the folder holds no table, or one that is not wide enough.
    """
    folder = read_folder(path)
    if folder.sizes.family != TABLE:
        text = "is an encoder, and no table of word vectors: make one of it with"
        raise DataError(path, f"{text} thincdialog distill {path} --texts FILE -o FOLDER")
    if folder.width < width:
        check_width(path, folder.width, width)
    words = [word.decode("utf-8", "surrogatepass") for word in wanted]
    for word, vector in zip(wanted, vectors_of_words(path, words)):
        if vector.any():
            yield word, vector[:width]


def vectors_of_words(path: str, words: Sequence[str]) -> Iterator[np.ndarray]:
    """Encode words, each by itself; zeros if the encoder has no piece of a word.

    path (str): The folder of an encoder or a table.
    YIELDS (np.ndarray): The vector of the next word, shape (width,), float32.
    """
    folder, tokenizer = read_folder(path), PretrainedTokenizer(path)
    if folder.sizes.family == TABLE:  # The length of a vector says how much its piece matters.
        folder.normalise = False
    model = text_encoder(folder)
    model.initialize()
    for start in range(0, len(words), _WORDS_AT_ONCE):
        yield from encode(model, *tokenizer.encode_many(words[start : start + _WORDS_AT_ONCE]))
