"""Embeddings of lines that depend on the order of words and the age of the line."""

from typing import Any, Callable, Optional, Tuple, cast

import numpy
from thinc.api import Model
from thinc.initializers import uniform_init
from thinc.types import Floats2d, Ragged
from thinc.util import partial

from ..ops.bags import places_in_bags, sum_by_key
from ..ops.devices import host_tokens, no_gradient, upload
from ..ops.dialog_ops import draw_mask
from ..ops.table_gradient import TouchedRows, add_rows
from ..registry import registry

InT = Ragged
OutT = Ragged

_OLDEST = 0x7FFFFFFF  # Larger than any segment.


@registry.layers("thincdialog.LineEmbed.v1")
def LineEmbed(
    nO: int,
    nV: Optional[int] = None,
    *,
    n_positions: int = 32,
    n_segments: int = 64,
    noise: float = 0.0,
) -> Model[InT, OutT]:
    """Embed each segment (line or turn) of an example as one vector, the current one last.

        Y[line] = T[segment] + sum_j E[id_j] * P[j]

    The learned factors P encode the position of a word in its line, and T encodes how many lines
    back the line is. Positions and segments beyond the last share its vector.

    nO (int): Width of a line's vector.
    nV (Optional[int]): Number of token ids; set before initialize (``set_vocabulary``).
    n_positions (int): Number of word positions with their own factors, 1 or more.
    n_segments (int): Number of segments with their own vector, 1 or more.
    noise (float): Probability that a line, and all older ones, become older by one segment, drawn
        for each line in training; at least 0 and below 1.
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): Output shape (n_lines, nO). Each example has at least one line,
        the current one; it exists even without words.
    RAISES (ValueError): If n_positions or n_segments is below 1, or noise is out of range.
    SOURCE: Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895, section 4.1, with
        learned factors instead of the fixed position encoding
    """
    if n_positions < 1 or n_segments < 1:
        raise ValueError(
            f"LineEmbed: n_positions = {n_positions} and n_segments = {n_segments} must be above 0"
        )
    if not 0.0 <= noise < 1.0:
        raise ValueError(f"LineEmbed: noise = {noise}, but it must be at least 0 and below 1")
    return Model(
        "line_embed",
        forward,
        init=init,
        dims={"nO": nO, "nV": nV, "nJ": n_positions, "nS": n_segments},
        params={"E": None, "P": None, "T": None},
        attrs={"touched_rows": TouchedRows(), "noise": noise},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    E, P, T = (cast(Floats2d, model.get_param(name)) for name in "EPT")
    found = _lines(*host_tokens(X), P.shape[0])
    ids, lines, places = found[:3]  # (n_tokens,) each
    segments, sizes, lines_of_examples = found[3:]  # (n_lines,) twice, (n_examples,)
    if is_train and model.attrs["noise"]:
        # A gap makes its line and all older lines older by one. So a line gets older by the
        # number of gaps from itself to its example's current line.
        is_gap = draw_mask(ops, segments.shape, model.attrs["noise"]) == 0
        last = lines_of_examples.cumsum() - 1
        is_gap[last] = False
        n_before = is_gap.cumsum()
        segments = segments + n_before[last].repeat(lines_of_examples) - n_before + is_gap
    segments = numpy.minimum(segments, T.shape[0] - 1)
    rows, rows_of_P, rows_of_T, owners = upload(ops, ids, places, segments, lines)
    words, factors = E[rows], P[rows_of_P]  # (n_tokens, nO) each
    Y = T[rows_of_T]  # (n_lines, nO)
    if ids.shape[0]:
        Y += ops.reduce_sum(words * factors, sizes)

    def backprop(dY: OutT) -> InT:
        d_lines = cast(Floats2d, dY.dataXd)
        d_products = d_lines[owners]  # (n_tokens, nO)
        model.attrs["touched_rows"].add(model, *sum_by_key(ops, d_products * factors, ids))
        add_rows(model, "P", *sum_by_key(ops, d_products * words, places))
        add_rows(model, "T", *sum_by_key(ops, d_lines, segments))
        return no_gradient(X)

    return Ragged(Y, lines_of_examples), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    ops, nO = model.ops, model.get_dim("nO")
    # Uniform with a standard deviation of 0.1.
    draw = partial(uniform_init, ops, lo=-0.173, hi=0.173)
    model.set_param("E", draw((model.get_dim("nV"), nO)))
    # Factors around 1: at first nearly a bag of words, in which positions differ a little.
    model.set_param("P", 1 + draw((model.get_dim("nJ"), nO)))
    model.set_param("T", draw((model.get_dim("nS"), nO)))


def _lines(tokens: Any, lengths: Any, n_positions: int) -> Tuple[Any, ...]:
    """Sort the tokens by line. Return the ids of the tokens, their lines and positions in the
    line; the segments of the lines and their numbers of tokens; and the number of lines of each
    example."""
    ids, segments = tokens[:, 0], tokens[:, 1].astype("int64")
    # Keys sort lines by example, then from the oldest segment to the current one.
    examples = numpy.arange(len(lengths), dtype="int64")
    keys = examples.repeat(lengths) << 32 | (_OLDEST - segments)
    distinct = numpy.unique(numpy.concatenate([keys, examples << 32 | _OLDEST]))
    sizes = numpy.bincount(numpy.searchsorted(distinct, keys), minlength=len(distinct))
    places = places_in_bags(sizes)
    return (
        ids[numpy.argsort(keys, kind="stable")],
        numpy.arange(len(distinct)).repeat(sizes),
        numpy.minimum(places, n_positions - 1),
        _OLDEST - (distinct & 0xFFFFFFFF),
        sizes.astype("int32"),
        numpy.bincount(distinct >> 32, minlength=len(lengths)).astype("int32"),
    )
