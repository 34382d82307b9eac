"""An end-to-end memory network that reads stories."""

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
    """Read the lines of a story, led by the question, which is the current line.

    Use it for questions about short lines (bAbI), in which the order of words and of lines matters.

    width (int): Width of the output and of one line's key.
    n_hops (int): Number of times that the memories are read, 1 or more.
    n_positions (int): Number of word positions in a line with their own vector; later positions
        share the last one.
    n_segments (int): Number of line ages with their own vector; older lines share the last one.
    dropout (float): Probability of zeroing a value of a line's vectors.
    n_memories (int): Number of newest lines to read. A story with fewer lines gets empty memories,
        to which a hop can attend if no line is useful. 0 reads all lines, without empty memories.
    noise (float): Probability that a line, and all older ones, become older by one, drawn for each
        line in training; at least 0 and below 1.
    linear_start (int): Number of training steps at the start in which the hops have no softmax,
        so that the model learns which words belong together before it learns to select lines.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width).
    SOURCE: Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895
    """
    width_of_line = (n_hops + 1) * width
    embed = LineEmbed(width_of_line, n_positions=n_positions, n_segments=n_segments, noise=noise)
    hops = MemoryHops(width, n_hops=n_hops, n_memories=n_memories, linear_start=linear_start)
    lines = chain(newest_turns(n_memories + 1), embed) if n_memories else embed
    return cast(Model[Ragged, Floats2d], chain(lines, CheckedDropout(dropout), hops))
