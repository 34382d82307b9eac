"""Encode texts with the tokenizer of a published encoder."""

from hashlib import sha256
from pathlib import Path
from typing import Any, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ..data.special_tokens import N_SPECIAL
from ..data.tokenizers.tokenizer import Tokenizer
from ..errors import ModelError, importing
from ..files.json_file import read_json, write_json
from ..files.plain_file import read_plain
from ..registry import registry
from .families import TABLE
from .folder import read_folder
from .weights import reading

_FILE = "checksum.json"


@registry.tokenizers("thincdialog.Pretrained.v1")
class PretrainedTokenizer(Tokenizer):
    """Encode texts with the tokenizer that a published encoder was trained with. The ids of a text
    begin with the [CLS] token and end with the [SEP] token, and are cut to the longest text that
    the encoder can read.

    Each id is the encoder's id plus ``N_SPECIAL``, the number of our special tokens.

    folder (str): Folder of the encoder: config.json, tokenizer.json and model.safetensors.
    prompt (Optional[str]): Text to put before each text, such as "query: "; None for the folder's
        default.
    RAISES (ModelError): If the folder holds no supported encoder.
    RAISES (MissingPackageError): If tokenizers is not installed.
    """

    needs_texts = False

    def __init__(self, folder: str, prompt: Optional[str] = None):
        with importing("pretrained", "A published encoder"):
            from tokenizers import Tokenizer as Pieces
        found = read_folder(folder)
        self.prompt = found.prompt if prompt is None else prompt
        self.max_tokens, self.n_pieces = found.max_tokens, found.sizes.n_pieces
        self.is_table = found.sizes.family == TABLE
        self._path = found.path / found.pieces
        with reading(self._path) as path:
            content = read_plain(path)
            self._checksum = sha256(content).hexdigest()
            pieces = Pieces.from_buffer(content)
            pieces.no_padding()
            pieces.enable_truncation(self.max_tokens)
            # The post-processor may add ids that are not in the vocabulary.
            highest = max([*pieces.get_vocab().values(), *pieces.encode("").ids], default=0)
        if highest >= self.n_pieces:
            text = f"has ids up to {highest:,}, but the encoder has {self.n_pieces:,} rows"
            raise ModelError(f"{self._path}  {text}: they belong to different encoders.")
        self._pieces: Any = pieces
        # The id of pieces that a table has no vector for.
        unknown = getattr(pieces.model, "unk_token", None)
        self._unknown = pieces.token_to_id(unknown) if unknown else None

    @property
    def n_ids(self) -> int:
        return N_SPECIAL + self.n_pieces

    def pieces(self, text: str) -> List[str]:
        return self._pieces.encode(self._clean(text)).tokens

    def encode(self, text: str) -> np.ndarray:
        return self._encode_group([text])[0]

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        texts = list(map(self._clean, texts))
        encoded = self._pieces.encode_batch(texts, add_special_tokens=not self.is_table)
        found = [each.ids for each in encoded]
        if self.is_table:
            found = [[id for id in ids if id != self._unknown] for ids in found]
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        ids = [each for part in found for each in part]
        return np.array(ids, dtype=np.int32) + np.int32(N_SPECIAL), lengths

    def _clean(self, text: str) -> str:
        # The library tokenizers reads UTF-8, which cannot hold lone surrogates.
        return f"{self.prompt}{text}".encode("utf-8", "replace").decode("utf-8")

    def decode(self, ids: Iterable[int]) -> str:
        return self._pieces.decode([int(id) - N_SPECIAL for id in ids if id >= N_SPECIAL])

    def to_disk(self, folder: Path) -> None:
        super().to_disk(folder)
        write_json(folder / _FILE, {"checksum": self._checksum})

    def from_disk(self, folder: Path) -> None:
        if read_json(folder / _FILE).get("checksum") != self._checksum:
            text = f"is not the tokenizer that {folder} was saved with"
            raise ModelError(f"{self._path}  {text}. Give the folder of that encoder.")
