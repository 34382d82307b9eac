"""Distill a table of word vectors from a published encoder."""

from collections import Counter
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ..data.words import any_script, normalise, split_words
from ..errors import DataError, DialogError, OutputError
from ..files.json_file import write_json
from ..files.whole_file import writing, written_whole
from ..formats.context import Bookmark
from ..formats.file_list import file_list
from ..formats.guessing import check_guess
from ..formats.inputs import OF_PARLAI, InputReading, format_of, layout_of, read_inputs
from ..ops.choice import get_dialog_ops, using_ops
from .families import TABLE
from .folder import CONFIG, TOKENIZER, WEIGHTS, read_folder
from .word_vectors import vectors_of_words

# A word with the relative frequency p has the weight _SIF / (_SIF + p).
_SIF = 1e-3
_UNKNOWN = "[UNK]"


class Distilled(NamedTuple):
    """Describe a table that was written.

    folder (Path): Folder of the table.
    n_words (int): Number of words that have a vector.
    width (int): Width of each vector.
    explained (float): Fraction of the variance of the encoder's vectors that was kept, 0.0 to 1.0.
    """

    folder: Path
    n_words: int
    width: int
    explained: float


def distill(
    encoder: Union[str, Path],
    texts: Union[str, Path],
    output: Union[str, Path],
    *,
    width: int = 256,
    format: Optional[str] = None,
    text_field: str = "text",
    encoding: Optional[str] = None,
) -> Distilled:
    """Write a table of the vectors of a corpus's words, in the layout of Model2Vec.

    The encoder reads each word by itself. The first principal components of the vectors are kept,
    and vectors of frequent words are scaled down. `thincdialog.WordVectors.v1` initialises an
    embedding table with these vectors.

    encoder (Union[str, Path]): The folder of an encoder, or of another table.
    texts (Union[str, Path]): The corpus: a file, a folder or a pattern, as for ``predict``.
    output (Union[str, Path]): The folder to write, which must not exist yet.
    width (int): Width of the new vectors, 1 or more. They are never wider than the encoder's.
    format (Optional[str]): Format of the texts, such as "csv", or a layout; None to guess it from
        the file.
    text_field (str): Field or column of the text.
    encoding (Optional[str]): Encoding of the texts; None for that of a byte order mark, or UTF-8.
    RETURNS (Distilled): Facts about the table.
    RAISES (DialogError): If width is out of range, the encoder or the texts cannot be read, the
        texts have no words, or the folder exists or cannot be written.
    SOURCE: Tulkens and van Dongen 2024, https://github.com/MinishLab/model2vec; weights: Arora et
        al. 2017, https://openreview.net/forum?id=SyK00v5xx
    """
    encoder, texts, output = str(encoder), str(texts), Path(output)
    if width < 1:
        raise DialogError(f"width = {width}, expected 1 or more")
    if output.exists():
        raise OutputError(f"{output}  already exists. Choose another name.")
    read_folder(encoder)
    counts = Counter(
        word
        for text in _texts(texts, format, text_field, encoding)
        for word in split_words(normalise(text, "NFC", True))
    )
    if not counts:
        raise DataError(texts, "has no words")
    words, numbers = zip(*counts.most_common())
    with using_ops(get_dialog_ops(ops="auto")):
        vectors, explained = _components(vectors_of_words(encoder, words), width)
    frequency = np.array(numbers) / sum(numbers)
    vectors *= (_SIF / (_SIF + frequency))[:, None]
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(output.absolute()) as new:
        _write(new, words, vectors.astype("f"))
    return Distilled(output, len(words), vectors.shape[1], explained)


def _texts(
    source: str, form: Optional[str], text_field: str, encoding: Optional[str]
) -> Iterator[str]:
    """Yield all texts of some files, and all turns of their conversations."""
    layout = layout_of(form) if form else None
    reading = InputReading(None if layout else form, layout, "context", text_field, "both")
    at = Bookmark(encoding=encoding)
    at.has_flags = True
    for number, path in enumerate(file_list(source)):
        at.open(number)
        if form is None:
            check_guess(path, format_of(path, reading), encoding, text_field)
        for row, message in read_inputs(path, reading, at):
            # In ParlAI's formats, every turn is a row of its own, and also context of later rows.
            before = [] if form in OF_PARLAI or message is None else message.get("context", [])
            yield from (text for _, text in before)
            yield from row.get("labels", ()) if form in OF_PARLAI else ()
            yield from () if message is None else [message["text"]]


def _components(vectors: np.ndarray, width: int) -> Tuple[np.ndarray, float]:
    """Return vectors as principal components, largest first, and the fraction of the variance that
    these explain."""
    centred = (vectors - vectors.mean(0)).astype("d")
    sizes, directions = np.linalg.eigh(centred.T @ centred)  # The smallest is first.
    kept = directions[:, ::-1][:, :width]
    share = sizes[::-1][:width].sum() / max(sizes.sum(), np.finfo("d").tiny)
    return centred @ kept, float(share)


def _write(folder: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    from safetensors.numpy import save
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    rows = {word: row for row, word in enumerate([_UNKNOWN, *words])}
    pieces = Tokenizer(models.WordLevel(rows, unk_token=_UNKNOWN))
    pieces.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    pieces.pre_tokenizer = pre_tokenizers.Split(Regex(any_script().pattern), "removed", invert=True)
    (folder / TOKENIZER).write_text(pieces.to_str(), encoding="utf-8")
    table = np.vstack([np.zeros_like(vectors[:1]), vectors])
    (folder / WEIGHTS).write_bytes(save({"embeddings": table}))
    write_json(folder / CONFIG, {"model_type": TABLE, "normalize": True})
