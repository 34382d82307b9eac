"""The base class of all tokenizers."""

from numbers import Integral
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ...contract import Contract, Returned, is_kind, is_mapping
from ...errors import ModelError
from ...files.plain_file import check_inside
from ...registry import registry
from ..vocabulary import Progress

# Number of characters to encode at a time; more would take more memory and save no time.
_GROUP = 1 << 16


class Tokenizer(Contract):
    """Turn a text into token ids from 0 to ``n_ids`` - 1, and ids back into a text as far as
    possible. A tokenizer is a subclass; register it with ``registry.tokenizers``.

    The first ids are the special tokens (see ``data.special_tokens``).

    needs_texts (bool): Whether ``build`` must be called with texts before the tokenizer can encode.
    """

    returns = {
        "pieces": Returned("a list of strings", is_kind(list, tuple)),
        "decode": Returned("a string", is_kind(str)),
        "word_ids": Returned("a dict of ids by words", is_mapping),
    }
    has = {"n_ids": Returned("a whole number", is_kind(Integral))}
    needs_texts: bool = True

    @property
    def ranges(self) -> Mapping[str, range]:
        """The range of ids of each view, by its name; empty except for tokenizers with views
        (``thincdialog.Views.v1``)."""
        return {}

    @property
    def n_ids(self) -> int:
        """Number of ids, including special tokens.

        RAISES (ValueError): If the tokenizer needs texts and was not built.
        """
        raise NotImplementedError

    def build(self, texts: Iterable[str], progress: Optional[Progress] = None) -> None:
        """Build the vocabulary, or other data of the tokenizer, from texts. The same texts lead to
        the same ids.

        texts (Iterable[str]): Training texts, read once.
        progress (Optional[Callable]): Called with the number of texts read so far.
        RAISES (DataError): If the tokenizer cannot be trained on the texts.
        """

    def pieces(self, text: str) -> List[str]:
        """Return the tokens of a text as strings, for display."""
        raise NotImplementedError

    def encode(self, text: str) -> np.ndarray:
        """Return the ids of a text; shape (n_tokens,), int32."""
        raise NotImplementedError

    def encode_many(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        """Return the ids of several texts. For many texts, this is several times as fast as calling
        ``encode`` for each.

        RETURNS (Tuple[np.ndarray, np.ndarray]): Ids of all texts, one text after the other,
            shape (n_tokens,), int32; number of ids of each text, shape (n_texts,), int64.
        """
        parts = [self._encode_group(group) for group in _groups(texts)]
        if len(parts) == 1:
            return parts[0]
        ids = [np.zeros(0, dtype=np.int32), *(each for each, _ in parts)]
        lengths = [np.zeros(0, dtype=np.int64), *(each for _, each in parts)]
        return np.concatenate(ids), np.concatenate(lengths)

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        """Do the work of ``encode_many`` for a group of texts; groups limit the memory needed."""
        return encode_each(self.encode, texts)

    def word_ids(self, texts: Iterable[str]) -> Dict[str, int]:
        """Return the words that have their own ids, to load pretrained word vectors.

        texts (Iterable[str]): Training texts; not read if the tokenizer has a vocabulary.
        RETURNS (Dict[str, int]): Word to id; empty if ids are not words.
        """
        return {}

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, without special tokens except the unknown token, "<unk>"."""
        raise NotImplementedError

    def to_disk(self, folder: Path) -> None:
        """Save the result of ``build`` in a folder. Settings are not saved, because the config has
        them."""
        folder.mkdir(parents=True, exist_ok=True)

    def from_disk(self, folder: Path) -> None:
        """Load the result of ``build`` that ``to_disk`` saved in a folder.

        RAISES (ModelError): If a file is missing or damaged.
        """


def load_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Load the data of a saved model's tokenizer.

    tokenizer (Tokenizer): The tokenizer, with the settings of the model's config.
    folder (Path): Folder of the model.
    RAISES (ModelError): If the tokenizer is missing, outside the folder, or damaged.
    """
    place = folder / "tokenizer"
    try:
        check_inside(place, folder)
    except OSError as error:
        raise ModelError(f"{place}  cannot be read: {error.strerror}.") from None
    tokenizer.from_disk(place)


def check_range(name: str, value: int, least: int) -> int:
    """Check that a setting is large enough, and return its value.

    RAISES (ValueError): If the value is smaller than ``least``.
    """
    if value < least:
        raise ValueError(f"{name} = {value}, expected {least} or more")
    return value


def encode_each(
    encode: Callable[[str], np.ndarray], texts: Sequence[str]
) -> Tuple[np.ndarray, np.ndarray]:
    """Encode several texts one by one, with the result of ``Tokenizer.encode_many``.

    encode (Callable): Returns the ids of a text.
    """
    ids = list(map(encode, texts))
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    joined = np.concatenate([np.zeros(0, dtype=np.int32), *ids])
    return joined.astype(np.int32, copy=False), lengths


def _groups(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    first = n_characters = 0
    for i, text in enumerate(texts, 1):
        n_characters += len(text)
        if n_characters >= _GROUP:
            yield texts[first:i]
            first, n_characters = i, 0
    if first < len(texts):
        yield texts[first:]


registry.tokenizers.makes(Tokenizer)
