"""An end-to-end memory network."""

from typing import cast

from thinc.api import Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.dropout import CheckedDropout
from ..layers.line_embed import LineEmbed
from ..layers.memory_hops import MemoryHops
from ..layers.newest_turns import newest_turns
from ..registry import registry


@registry.models("thincdialog.MemoryReader.v1")
def MemoryReader(
    width: int = 32,
    n_hops: int = 3,
    n_positions: int = 32,
    n_segments: int = 64,
    dropout: float = 0.1,
    n_memories: int = 0,
    noise: float = 0.0,
    linear_start: int = 0,
) -> Model[Ragged, Floats2d]:
    """Reads the lines of a story, led by the question, which is the current line.

    For questions about short lines (bAbI): the order of words and that of lines count.

    width (int): Width of the output and of one line's key.
    n_hops (int): Readings, 1 or more.
    n_positions (int): Places in a line told apart; later ones share the last.
    n_segments (int): Lines told apart by age; older ones share the last.
    dropout (float): Probability of zeroing a cell of a line's vectors.
    n_memories (int): Newest lines that are read; a story with fewer lines gets empty memories, to
        which a hop can attend if no line is of use. 0 for all lines, and no others.
    noise (float): Probability of a gap before a line, at which it and all older ones become older
        by one, drawn in training; at least 0 and below 1.
    linear_start (int): Training steps without the softmax of the hops, at first; so they find what
        belongs together before they choose.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    SOURCE: Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895
    """
    width_of_line = (n_hops + 1) * width
    embed = LineEmbed(width_of_line, n_positions=n_positions, n_segments=n_segments, noise=noise)
    hops = MemoryHops(width, n_hops=n_hops, n_memories=n_memories, linear_start=linear_start)
    lines = chain(newest_turns(n_memories + 1), embed) if n_memories else embed
    return cast(Model[Ragged, Floats2d], chain(lines, CheckedDropout(dropout), hops))
