"""Initialise an embedding table with word vectors from a file, or from the folder of a table."""

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


@registry.initializers("thincdialog.WordVectors.v1")
def configure_word_vectors(path: str) -> Callable[[Ops, tuple], Floats2d]:
    """Initialise a table of embeddings with word vectors: from a file of word2vec (text or binary),
    fastText (.vec) or GloVe, also compressed with gzip, or from the folder of a table in the layout
    of Model2Vec or WordLlama, such as ``thincdialog distill`` writes.

    Rows of words without a vector are drawn at random, and all vectors are scaled by one factor so
    that they are as large as these rows on average. All rows are trained further.

    The table must be as wide as the vectors of a file. Vectors of a folder may be wider; the table
    then takes their first columns. Words are looked up in the form in which the tokenizer returns
    them, so the tokenizer's `lower` determines the case. The folder's own tokenizer may cut a word
    into pieces; the vector of the word is then the mean of their vectors. If the model's tokenizer
    has hashed rows, all words of the training data are looked up; n-grams and pieces of words get
    no vector.

    path (str): The file or folder. It is read when a training begins, unless the table is set by
        `init_from`. A saved model does not need it.
    RETURNS (Callable): ``init(ops, shape) -> table``.
    """
    read = read_table if os.path.isdir(path) else read_word_vectors
    return partial(word_vectors_init, read, path)


def read_table(path: str, wanted: Collection[bytes], width: int) -> Iterator[Row]:
    """Yield the vectors of words from a folder's table, as ``read_word_vectors`` does from a file.

    path (str): The folder.
    wanted (Collection[bytes]): The words, in UTF-8.
    width (int): Number of elements of each vector; wider vectors of the table are cut.
    RAISES (DialogError): If the folder holds no table, or its vectors are not wide enough.
    """
    folder = read_folder(path)
    if folder.sizes.family != TABLE:
        text = "is an encoder, not a table of word vectors: make one from it with"
        raise DataError(path, f"{text} thincdialog distill {path} --texts FILE -o FOLDER")
    if folder.width < width:
        check_width(path, folder.width, width)
    words = [word.decode("utf-8", "surrogatepass") for word in wanted]
    for word, vector in zip(wanted, vectors_of_words(path, words)):
        if vector.any():
            yield word, vector[:width]


def vectors_of_words(path: str, words: Sequence[str]) -> np.ndarray:
    """Encode words, each by itself.

    path (str): The folder of an encoder or a table.
    words (Sequence[str]): The words.
    RETURNS (np.ndarray): The vectors, shape (n_words, width), float32; zeros for a word of which a
        table has no piece.
    """
    folder, tokenizer = read_folder(path), PretrainedTokenizer(path)
    if folder.sizes.family == TABLE:  # The length of a vector is the weight of its piece.
        folder.normalise = False
    model = text_encoder(folder)
    model.initialize()
    return encode(model, *tokenizer.encode_many(words))
