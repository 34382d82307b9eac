"""Check that a custom tokenizer returns valid ids."""

from functools import partial
from typing import Any, Callable, Sequence, Tuple

import numpy as np

from ...contract import CodeError, check_attributes, is_ours, place_of, show
from .tokenizer import Tokenizer, encode_each


def many_encoder_of(
    tokenizer: Tokenizer,
) -> Callable[[Sequence[str]], Tuple[np.ndarray, np.ndarray]]:
    """Return the tokenizer's ``encode_many``; for a custom tokenizer, a function that also checks
    the ids.

    A custom tokenizer may be a subclass of a built-in one. Unless it defines its own
    ``encode_many``, its ``encode`` is called for each text, because it may be overridden.

    RAISES (CodeError): If the tokenizer has no valid ``n_ids``. The returned function raises it if
        the tokenizer returns anything other than ids.
    """
    check_attributes(tokenizer)
    if is_ours(type(tokenizer)):
        return tokenizer.encode_many
    owners = [each for each in type(tokenizer).__mro__ if "encode_many" in vars(each)]
    if owners and not is_ours(owners[0]):
        return partial(_encode_many, tokenizer)
    return partial(encode_each, partial(_encode, tokenizer))


def _encode(tokenizer: Tokenizer, text: str) -> np.ndarray:
    ids = tokenizer.encode(text)
    if _are_ids(ids, tokenizer.n_ids):
        return ids
    raise _error(tokenizer, "encode", ids, repr(text[:60]), "an array")


def _encode_many(tokenizer: Tokenizer, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
    given = tokenizer.encode_many(texts)
    if isinstance(given, tuple) and len(given) == 2:
        ids, lengths = given
        if (
            _are_ids(ids, tokenizer.n_ids)
            and _are_ids(lengths, len(ids) + 1)
            and len(lengths) == len(texts)
            and lengths.sum() == len(ids)
        ):
            return ids.astype(np.int32, copy=False), lengths.astype(np.int64, copy=False)
    expected = f"the ids of all texts, {len(texts)} lengths that sum to their number; ids are"
    raise _error(tokenizer, "encode_many", given, f"{len(texts)} texts", f"{expected} an array")


def _are_ids(ids: Any, n_ids: int) -> bool:
    is_array = isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu"
    return is_array and not (len(ids) and (ids.min() < 0 or ids.max() >= n_ids))


def _error(tokenizer: Tokenizer, method: str, given: Any, texts: str, expected: str) -> CodeError:
    return CodeError(
        f"{place_of(getattr(tokenizer, method))} returned {show(given)} for {texts}, but should "
        f"return {expected} of whole numbers of one dimension, each 0 to {tokenizer.n_ids - 1} "
        f"(n_ids is {tokenizer.n_ids})"
    )
