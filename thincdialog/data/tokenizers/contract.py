"""Sees that a tokenizer of a user's gives ids as it must."""

from functools import partial
from typing import Callable

import numpy as np

from ...config.functions import locate
from ...errors import DataError
from .tokenizer import Tokenizer

_OURS = "thincdialog."


def encoder_of(tokenizer: Tokenizer) -> Callable[[str], np.ndarray]:
    """The tokenizer's ``encode``; of one that is not ours, each text's ids are looked at.

    RAISES (DataError): When called, if something else comes than ids of it.
    """
    if type(tokenizer).__module__.startswith(_OURS):
        return tokenizer.encode
    return partial(_encode, tokenizer)


def _encode(tokenizer: Tokenizer, text: str) -> np.ndarray:
    ids = tokenizer.encode(text)
    is_array = isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu"
    if is_array and not (len(ids) and (ids.min() < 0 or ids.max() >= tokenizer.n_ids)):
        return ids
    shown = " ".join(repr(ids).split())
    raise DataError(
        "[tokenizer]",
        f"{type(tokenizer).__name__}.encode() ({locate(type(tokenizer))}) gave {shown[:80]} "
        f"for {text[:60]!r}: expected an array of whole numbers of one dimension, each 0 to "
        f"{tokenizer.n_ids - 1} (n_ids is {tokenizer.n_ids})",
    )
