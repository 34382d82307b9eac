"""Turns that are met for the first time, as token rows."""

from itertools import chain
from typing import Callable, List, Sequence, Tuple

import numpy as np

from ..messages import SELF, Turn
from .slices import slice_places
from .special_tokens import PARTNER_SPEAKS, SELF_SPEAKS, TURN

EncodeMany = Callable[[Sequence[str]], Tuple[np.ndarray, np.ndarray]]


def lay_out_turns(
    encode_many: EncodeMany, segments: str, speaker_tokens: bool, turns: Sequence[Turn]
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Token rows (see ``TurnStore``) of turns, each with ``<turn>`` at its end.

    encode_many (Callable): The tokenizer's.
    segments (str): What is a unit: "turn", or "line" (those with more than white space).
    speaker_tokens (bool): Whether each turn begins with its speaker's token.
    turns (Sequence[Turn]): One or more.
    RETURNS (Tuple[np.ndarray, np.ndarray, np.ndarray]): Rows of all, shape (n_tokens,),
        and of each turn the number of its rows and of its units; int64.
    """
    texts = [text for _, text in turns]
    n_units = np.ones(len(turns), dtype=np.int64)
    if segments == "line":
        of_turns = [_lines(text) for text in texts]
        texts = list(chain.from_iterable(of_turns))
        n_units = np.array(list(map(len, of_turns)), dtype=np.int64)
    ids, lengths = encode_many(texts)
    last = n_units.cumsum() - 1  # Unit of each turn.
    first = last - n_units + 1
    n_before = np.zeros(len(texts), dtype=np.int64)  # Rows before the first token.
    n_before[first] = speaker_tokens
    totals = lengths + n_before
    totals[last] += 1
    ends = totals.cumsum()
    starts = ends - totals
    rows = np.empty((int(ends[-1]), 2), dtype=np.int32)
    rows[slice_places(starts + n_before, lengths), 0] = ids
    rows[ends[last] - 1, 0] = TURN
    if speaker_tokens:
        rows[starts[first], 0] = [
            SELF_SPEAKS if role == SELF else PARTNER_SPEAKS for role, _ in turns
        ]
    n_behind = last.repeat(n_units) - np.arange(len(texts))
    rows[:, 1] = n_behind.repeat(totals)
    return rows.view(np.int64).ravel(), np.add.reduceat(totals, first), n_units


def _lines(text: str) -> List[str]:
    return [line for line in text.split("\n") if line.strip()] or [""]
