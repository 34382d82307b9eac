import io
import json
import re
import zlib
from itertools import chain, islice
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Literal, Optional

import numpy as np

from ...errors import DataError, ModelError, importing
from ...files.json_text import parse_json
from ...files.plain_file import read_plain
from ...registry import registry
from ..special_tokens import N_SPECIAL, UNKNOWN
from ..vocabulary import Progress, counted
from ..words import NormalForm, normalise
from .byte_tokenizer import N_BYTES
from .tokenizer import Tokenizer, check_range

_MODEL, _CHECK = "subwords.model", "subwords.json"
# Maximum number of characters of a text to pass to sentencepiece, which skips longer texts.
_LONGEST = 4096


@registry.tokenizers("thincdialog.Subwords.v1")
class SubwordTokenizer(Tokenizer):
    """Split texts into subwords, which sentencepiece learns from the training texts. Subwords
    include the spaces between words.

    With ``byte_fallback``, ``normalize = "none"`` and ``lower = false``, ``decode`` restores
    every text that UTF-8 can represent, except that the character U+2581 becomes a space.

    size (int): Maximum number of subwords to learn; with byte fallback, 256 of them are the bytes.
    algorithm (str): "unigram" (Kudo 2018, https://arxiv.org/abs/1804.10959) or "bpe"
        (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909), which trains faster.
    lower (bool): Whether to put everything into lower case.
    normalize (str): Normal form of Unicode: "NFC", "NFKC" or "none".
    byte_fallback (bool): Whether to encode an unknown character as its bytes.
    RAISES (MissingPackageError): If sentencepiece is not installed.
    RAISES (ValueError): If a value is out of range.
    """

    def __init__(
        self,
        *,
        size: int = 8000,
        algorithm: Literal["unigram", "bpe"] = "unigram",
        lower: bool = True,
        normalize: NormalForm = "NFC",
        byte_fallback: bool = True,
    ):
        with importing("subwords", "The tokenizer thincdialog.Subwords.v1"):
            import sentencepiece  # noqa: F401 - raises the error before any data is read
        self.size = check_range("size", size, N_BYTES + 2 if byte_fallback else 2)
        self.algorithm = algorithm
        self.lower = lower
        self.normalize = normalize
        self.byte_fallback = byte_fallback
        self._processor: Any = None

    @property
    def n_ids(self) -> int:
        # The first id of sentencepiece, its unknown piece, is the special token UNKNOWN here.
        return N_SPECIAL + self._loaded.vocab_size() - 1

    @property
    def _loaded(self) -> Any:
        if self._processor is None:
            raise ValueError("SubwordTokenizer has no subwords yet: call build() first")
        return self._processor

    def build(self, texts: Iterable[str], progress: Optional[Progress] = None) -> None:
        from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

        parts = self._parts(counted(texts, progress))
        first = list(islice(parts, 1))
        if not first:
            raise DataError("subwords", "there is no text to learn subwords from")
        model = io.BytesIO()
        try:
            SentencePieceTrainer.train(
                sentence_iterator=chain(first, parts),
                model_writer=model,
                model_type=self.algorithm,
                vocab_size=self.size,
                hard_vocab_limit=False,
                byte_fallback=self.byte_fallback,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                max_sentence_length=4 * _LONGEST,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                unk_surface="<unk>",
                num_threads=1,  # Results of several threads are rounded differently.
                minloglevel=3,
            )
        except RuntimeError as error:
            text = f"cannot learn {self.size} subwords from these texts"
            needed = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
            why = f"their characters need {needed[1]}: raise [tokenizer] size" if needed else error
            raise DataError("subwords", f"{text}: {why}") from None
        self._processor = SentencePieceProcessor(model_proto=model.getvalue())

    def _parts(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            clean = self._clean(text)
            for start in range(0, len(clean), _LONGEST):
                part = clean[start : start + _LONGEST]
                if part.strip():
                    yield part

    def _clean(self, text: str) -> str:
        text = normalise(text, self.normalize, self.lower)
        # sentencepiece takes valid UTF-8 only, which excludes lone surrogates.
        return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

    def pieces(self, text: str) -> List[str]:
        return self._loaded.encode(self._clean(text), out_type=str)

    def encode(self, text: str) -> np.ndarray:
        ids = np.array(self._loaded.encode(self._clean(text)), dtype=np.int32)
        return np.where(ids == 0, UNKNOWN, ids + (N_SPECIAL - 1)).astype(np.int32)

    def word_ids(self, texts: Iterable[str]) -> Dict[str, int]:
        pieces = map(self._loaded.id_to_piece, range(1, self._loaded.vocab_size()))
        # A piece that begins a word (with U+2581) may be a whole word.
        numbered = enumerate(pieces, N_SPECIAL)
        return {piece[1:]: i for i, piece in numbered if piece[:1] == "\u2581" != piece}

    def decode(self, ids: Iterable[int]) -> str:
        kept = [
            0 if each == UNKNOWN else int(each) - (N_SPECIAL - 1)
            for each in ids
            if each == UNKNOWN or each >= N_SPECIAL
        ]
        return self._loaded.decode(kept)

    def to_disk(self, folder: Path) -> None:
        model = self._loaded.serialized_model_proto()
        super().to_disk(folder)
        (folder / _MODEL).write_bytes(model)
        check = {"bytes": len(model), "crc32": zlib.crc32(model)}
        (folder / _CHECK).write_text(json.dumps(check) + "\n", encoding="utf-8")

    def from_disk(self, folder: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        try:
            model = read_plain(folder / _MODEL)
            check = parse_json(read_plain(folder / _CHECK))
        except OSError as error:
            raise ModelError(
                f"{error.filename}: cannot read the subwords ({error.strerror})"
            ) from None
        except ValueError:
            check = None
        if check != {"bytes": len(model), "crc32": zlib.crc32(model)}:
            raise ModelError(
                f"{folder / _MODEL}: these subwords are damaged or were changed since they "
                "were saved; train again or restore the file"
            )
        try:
            processor = SentencePieceProcessor(model_proto=model)
            # Decode every piece now: an invalid one would otherwise only fail in some reply.
            pieces = [processor.id_to_piece(each) for each in range(processor.vocab_size())]
        except (RuntimeError, UnicodeDecodeError):
            raise ModelError(
                f"{folder / _MODEL}: not a model of sentencepiece; train again or restore the file"
            ) from None
        if len(pieces) < 2 or processor.unk_id() != 0:
            raise ModelError(
                f"{folder / _MODEL}: these subwords were not trained by thincdialog; train again "
                "or restore the file"
            )
        self._processor = processor
