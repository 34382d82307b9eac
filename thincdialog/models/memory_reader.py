"""An end-to-end memory network."""

from typing import cast

from thinc.api import Model, chain
from thinc.types import Floats2d, Ragged

from ..layers.dropout import CheckedDropout
from ..layers.line_embed import LineEmbed
from ..layers.memory_hops import MemoryHops
from ..registry import registry


@registry.models("thincdialog.MemoryReader.v1")
def MemoryReader(
    width: int = 32,
    n_hops: int = 3,
    n_positions: int = 32,
    n_segments: int = 64,
    dropout: float = 0.1,
) -> Model[Ragged, Floats2d]:
    """Reads the lines of a story, led by the question, which is the current line.

    For questions about short lines (bAbI): the order of words and that of lines count.

    width (int): Width of the output and of one line's key.
    n_hops (int): Readings, 1 or more.
    n_positions (int): Places in a line told apart; later ones share the last.
    n_segments (int): Lines told apart by age; older ones share the last.
    dropout (float): Probability of zeroing a cell of a line's vectors.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    SOURCE: Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895
    """
    embed = LineEmbed((n_hops + 1) * width, n_positions=n_positions, n_segments=n_segments)
    hops = MemoryHops(width, n_hops=n_hops)
    return cast(Model[Ragged, Floats2d], chain(embed, CheckedDropout(dropout), hops))
