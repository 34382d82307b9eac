"""The tokenizer of a published encoder."""

from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ..data.special_tokens import N_SPECIAL
from ..data.tokenizers.tokenizer import Tokenizer
from ..errors import MissingPackageError, ModelError
from ..files.json_file import read_json, write_json
from ..files.plain_file import read_plain
from ..registry import registry
from .families import TABLE
from .folder import TOKENIZER, read_folder
from .weights import reading

_SETTINGS = "settings.json"


@registry.tokenizers("thincdialog.Pretrained.v1")
class PretrainedTokenizer(Tokenizer):
    """The tokenizer that an encoder was trained with: a text's ids begin with its [CLS] token and
    end with its [SEP] token, and are no more than the encoder can read.

    Each id is the encoder's, plus the number of our special tokens.

    folder (str): The encoder's: config.json, tokenizer.json and model.safetensors.
    prompt (Optional[str]): What is put before each text, such as "query: "; the folder's default
        if None.
    RAISES (ModelError): If the folder holds no such encoder.
    RAISES (MissingPackageError): If tokenizers is not installed.
    """

    needs_texts = False

    def __init__(self, folder: str, prompt: Optional[str] = None):
        found = read_folder(folder)
        self._settings: Dict[str, Any] = {
            "n_pieces": found.sizes.n_pieces,
            "max_tokens": found.max_tokens,
            "prompt": found.prompt if prompt is None else prompt,
            "is_table": found.sizes.family == TABLE,
        }
        self._read(found.path / found.pieces, found.tokenizer)

    def _read(self, path: Path, text: str) -> None:
        try:
            from tokenizers import Tokenizer as Pieces
        except ImportError:
            raise MissingPackageError(
                "tokenizers", "pretrained", "The tokenizer thincdialog.Pretrained.v1"
            ) from None
        try:
            pieces = Pieces.from_str(text)
            pieces.no_padding()
            pieces.enable_truncation(self._settings["max_tokens"])
            # The post-processor has ids of its own.
            highest = max([*pieces.get_vocab().values(), *pieces.encode("").ids], default=0)
        except Exception as error:
            reason = " ".join(str(error)[:200].split())
            raise ModelError(f"{path}  is no tokenizer ({reason}). Download it again.") from None
        if highest >= self._settings["n_pieces"]:
            text = f"has ids up to {highest:,}, but the encoder {self._settings['n_pieces']:,} rows"
            raise ModelError(f"{path}  {text}: they belong to different encoders.")
        self._pieces: Any = pieces
        # Pieces that a table has no vector for.
        unknown = getattr(pieces.model, "unk_token", None)
        self._unknown = pieces.token_to_id(unknown) if unknown else None

    @property
    def n_ids(self) -> int:
        return N_SPECIAL + self._settings["n_pieces"]

    def pieces(self, text: str) -> List[str]:
        return self._pieces.encode(self._clean(text)).tokens

    def encode(self, text: str) -> np.ndarray:
        return self._encode_group([text])[0]

    def _encode_group(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        is_table = self._settings["is_table"]
        texts = list(map(self._clean, texts))
        encoded = self._pieces.encode_batch(texts, add_special_tokens=not is_table)
        found = [each.ids for each in encoded]
        if is_table:
            found = [[id for id in ids if id != self._unknown] for ids in found]
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        ids = [each for part in found for each in part]
        return np.array(ids, dtype=np.int32) + np.int32(N_SPECIAL), lengths

    def _clean(self, text: str) -> str:
        # Lone surrogates have no UTF-8, which tokenizers reads.
        return (self._settings["prompt"] + text).encode("utf-8", "replace").decode("utf-8")

    def decode(self, ids: Iterable[int]) -> str:
        return self._pieces.decode([int(id) - N_SPECIAL for id in ids if id >= N_SPECIAL])

    def to_disk(self, folder: Path) -> None:
        super().to_disk(folder)
        (folder / TOKENIZER).write_text(self._pieces.to_str(), encoding="utf-8")
        write_json(folder / _SETTINGS, self._settings)

    def from_disk(self, folder: Path) -> None:
        with reading(folder / TOKENIZER):
            text = read_plain(folder / TOKENIZER).decode("utf-8", "replace")
        settings = read_json(folder / _SETTINGS)
        kinds = {"n_pieces": int, "max_tokens": int, "prompt": str, "is_table": bool}
        if {name: type(value) for name, value in settings.items()} != kinds:
            raise ModelError(f"{folder / _SETTINGS}  is damaged. Save the model again.")
        self._settings = settings
        self._read(folder / TOKENIZER, text)
