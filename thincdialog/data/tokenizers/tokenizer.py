"""What every tokenizer can do."""

from pathlib import Path
from typing import Iterable, List, Optional

import numpy as np

from ..vocabulary import Progress


class Tokenizer:
    """Turns a text into token ids, 0 to ``n_ids`` - 1, and back as far as possible.

    The first ids are the special tokens (``data.special_tokens``). ``needs_texts``
    says whether ``build`` must see texts before anything can be encoded.
    """

    needs_texts: bool = True

    @property
    def n_ids(self) -> int:
        """Number of ids, special ones included.

        RAISES (ValueError): If the tokenizer needs texts and was not built.
        """
        raise NotImplementedError

    def build(self, texts: Iterable[str], progress: Optional[Progress] = None) -> None:
        """Learn from texts; the same texts give the same ids.

        progress (Optional[Callable]): Called with the number of texts read so far.
        RAISES (DataError): If nothing can be learnt from the texts.
        """

    def pieces(self, text: str) -> List[str]:
        """The strings that a text is cut into, for display."""
        raise NotImplementedError

    def encode(self, text: str) -> np.ndarray:
        """RETURNS (np.ndarray): Ids, shape (n_tokens,), int32."""
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. Special tokens are left out, the unknown token is "<unk>"."""
        raise NotImplementedError

    def to_disk(self, folder: Path) -> None:
        """Save what ``build`` learnt; the settings are the config's."""
        folder.mkdir(parents=True, exist_ok=True)

    def from_disk(self, folder: Path) -> None:
        """Load what ``to_disk`` saved.

        RAISES (ModelError): If it is not there or damaged.
        """


def check_range(name: str, value: int, least: int) -> int:
    """The value, if it is large enough.

    RAISES (ValueError): If it is smaller than ``least``.
    """
    if value < least:
        raise ValueError(f"{name} = {value}, expected {least} or more")
    return value
