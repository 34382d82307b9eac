"""Provide the vectors of an encoder that is not trained. Each text is encoded only once."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, sha256
from itertools import islice, repeat
from pathlib import Path
from threading import Lock
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import numpy as np
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..data import Tokenizer
from ..data.special_tokens import N_SPECIAL
from ..examples.encoded import slice_places
from ..models.views import tokens_of
from ..ops.bags import bag_numbers
from ..ops.devices import host_tokens, no_gradient
from .folder import PretrainedFolder
from .vector_files import VectorFiles, default_folder

# Largest number of texts whose vectors stay in memory because they are not on disk.
_MOST_RECENT = 1 << 14
# Number of texts whose vectors are computed and written to disk together.
_AT_ONCE = 1 << 10


@dataclass(eq=False)
class TextVectors:
    """Find the vectors of texts on disk or in memory, or compute them. All copies of a model share
    the same object.

    folder (PretrainedFolder): Folder of the encoder.
    pooling (str): Pooling, as in the config.
    encode (Callable): Computes vectors, given ids and lengths.
    place (Optional[str]): Folder of the vectors on disk; None for the user's cache.
    max_gb (float): Largest size of that folder in GB.
    """

    folder: PretrainedFolder
    pooling: str
    encode: Callable[[np.ndarray, np.ndarray], np.ndarray]
    place: Optional[str]
    max_gb: float

    def __post_init__(self) -> None:
        self._recent: "OrderedDict[bytes, np.ndarray]" = OrderedDict()
        self._lock = Lock()

    def __deepcopy__(self, memo: Any) -> "TextVectors":
        return self

    def __reduce__(self) -> Tuple:
        return TextVectors, (self.folder, self.pooling, self.encode, self.place, self.max_gb)

    @cached_property
    def files(self) -> VectorFiles:
        """The files of vectors on disk, which are opened at first use."""
        root = default_folder() if self.place is None else Path(self.place)
        encoder = sha256(f"{self.folder.checksum} {self.pooling}".encode()).hexdigest()[:16]
        return VectorFiles(root, encoder, self.folder.width, int(self.max_gb * 1e9))

    def of(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the vectors of texts. Vectors that had to be computed stay in memory.

        ids (np.ndarray): Ids of all texts, one after the other, shape (n_tokens,), int32.
        lengths (np.ndarray): Number of tokens of each text, shape (n_texts,).
        RETURNS (np.ndarray): The vectors, shape (n_texts, width), float32.
        """
        keys = _keys(ids, lengths)
        with self._lock:
            found = {key: self._find(key) for key in keys}
            new = self._compute(ids, lengths, keys, found)
            self._recent.update(new)
            while len(self._recent) > _MOST_RECENT:
                self._recent.popitem(last=False)
            found.update(new)
        shape = (len(keys), self.folder.width)
        return np.array([found[key] for key in keys], dtype="f").reshape(shape)

    def keep(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Compute the vectors of the texts that are not on disk, and write them to disk. Arguments
        are those of ``of``.

        RAISES (OutputError): If the vectors cannot be written.
        """
        keys = _keys(ids, lengths)
        new = self._compute(ids, lengths, keys, {key: self.files.get(key) for key in keys})
        if new:
            self.files.add(list(new), np.stack(list(new.values())))

    def _compute(
        self, ids: np.ndarray, lengths: np.ndarray, keys: List[bytes], known: Dict[bytes, Any]
    ) -> Dict[bytes, np.ndarray]:
        """Compute the vectors of the texts that are not known yet, and return them by key.

        known (Dict[bytes, Any]): Key to vector; None if the vector is not known.
        """
        rows = {key: row for row, key in enumerate(keys) if known[key] is None}
        if not rows:
            return {}
        return dict(zip(rows, self.encode(*some_texts(ids, lengths, list(rows.values())))))

    def _find(self, key: bytes) -> Optional[np.ndarray]:
        recent = self._recent.get(key)
        if recent is None:
            return self.files.get(key)
        self._recent.move_to_end(key)
        return recent


def frozen_encoder(vectors: TextVectors, n_segments: int) -> Model[Ragged, Floats2d]:
    """Build a layer that returns the vectors of texts, and has no parameters.

    vectors (TextVectors): The vectors.
    n_segments (int): Number of vectors that are concatenated: the first is of the current turn, the
        last is the mean of all older turns.
    """
    return Model(
        "frozen_encoder",
        _forward,
        dims={"nO": n_segments * vectors.folder.width, "nV": None, "nS": n_segments},
        attrs={"vectors": vectors},
    )


def _forward(
    model: Model[Ragged, Floats2d], X: Ragged, is_train: bool
) -> Tuple[Floats2d, Callable]:
    vectors: TextVectors = model.attrs["vectors"]
    n_segments, n_examples = model.get_dim("nS"), len(X.lengths)
    ids, examples, segments = _pieces(X)
    # Neighbouring tokens of the same example and segment are one text.
    begins = np.flatnonzero(np.diff(examples, prepend=-1) | np.diff(segments, prepend=-1))
    found = vectors.of(ids, np.diff(begins, append=len(ids)))  # (n_texts, width)
    slots = examples[begins] * n_segments + np.minimum(segments[begins], n_segments - 1)
    # Texts of the same slot (the older turns) follow each other.
    firsts = np.flatnonzero(np.diff(slots, prepend=-1))
    Y: Any = np.zeros((n_examples * n_segments, found.shape[1]), dtype="f")
    Y[slots[firsts]] = np.add.reduceat(found, firsts)
    Y[slots[firsts]] /= np.diff(firsts, append=len(slots))[:, None]

    def backprop(dY: Floats2d) -> Ragged:
        return no_gradient(X)

    return model.ops.asarray2f(Y.reshape(n_examples, model.get_dim("nO"))), backprop


def encode_ahead(
    model: Any,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    progress: Optional[Callable[[int], None]] = None,
) -> None:
    """Compute the vectors that a model will need in training, and write them to disk.

    model (Any): Model of an agent. If it is not a Thinc model, or has no frozen encoder, nothing is
        computed.
    tokenizer (Tokenizer): Tokenizer of the model, ready to use.
    texts (Iterable[str]): Texts of the data; the vector of equal texts is computed once.
    progress (Optional[Callable]): Called with the number of texts done so far.
    RAISES (OutputError): If the vectors cannot be written.
    """
    n_done, left = 0, iter(texts)
    is_needed = isinstance(model, Model) and any("vectors" in node.attrs for node in model.walk())
    while is_needed and (some := list(dict.fromkeys(islice(left, _AT_ONCE)))):
        ids, lengths = tokenizer.encode_many(some)
        rows: Any = np.stack([ids, np.zeros_like(ids)], axis=1)
        for vectors, X in _readers(model, Ragged(rows, lengths)).items():  # type: ignore[arg-type]
            own, examples, _ = _pieces(X)
            vectors.keep(own, np.bincount(examples))
        n_done += len(some)
        if progress is not None:
            progress(n_done)


def _readers(model: Model, X: Ragged) -> Dict[TextVectors, Ragged]:
    """Return the vectors of each frozen encoder in a model, with the tokens that it reads."""
    if "vectors" in model.attrs:
        return {model.attrs["vectors"]: X}
    views = [tokens_of(ids, X) for ids in model.attrs.get("views", {}).values()]
    found = [_readers(*each) for each in zip(model.layers, views or repeat(X))]
    return {vectors: tokens for part in found for vectors, tokens in part.items()}


def _pieces(X: Ragged) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ids that the encoder reads, with the number of the example and the segment of each
    id."""
    tokens, lengths = host_tokens(X)
    is_own = tokens[:, 0] >= N_SPECIAL  # The agent may have put the special <turn> between turns.
    return tokens[is_own, 0], bag_numbers(lengths)[is_own], tokens[is_own, 1]


def _keys(ids: np.ndarray, lengths: np.ndarray) -> List[bytes]:
    data, ends = np.ascontiguousarray(ids, dtype="<i4").tobytes(), (4 * np.cumsum(lengths)).tolist()
    return [
        blake2b(data[start:end], digest_size=16).digest()
        for start, end in zip([0, *ends[:-1]], ends)
    ]


def some_texts(ids: np.ndarray, lengths: np.ndarray, rows: Any) -> Tuple[np.ndarray, np.ndarray]:
    """Return the ids and lengths of the texts with these numbers."""
    starts = np.cumsum(lengths) - lengths
    return ids[slice_places(starts[rows], lengths[rows])], lengths[rows]
