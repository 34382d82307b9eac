"""Embeddings of lines that depend on the order of words and the age of the line."""

from typing import Any, Callable, Optional, Tuple, cast

import numpy
from thinc.api import Model
from thinc.initializers import uniform_init
from thinc.types import Floats2d, Ragged

from ..ops.bags import bag_numbers, places_in_bags, sum_by_key
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
    if min(n_positions, n_segments) < 1 or not 0.0 <= noise < 1.0:
        found = f"n_positions = {n_positions}, n_segments = {n_segments} and noise = {noise}"
        raise ValueError(
            f"LineEmbed: {found}, expected 1 or more, and a noise from 0.0 to below 1.0"
        )
    dims = {"nO": nO, "nV": nV, "nJ": n_positions, "nS": n_segments}
    attrs = {"touched_rows": TouchedRows(), "noise": noise}
    params = dict.fromkeys("EPT")
    return Model("line_embed", forward, init=init, dims=dims, params=params, attrs=attrs)


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops = model.ops
    E, P, T = (cast(Floats2d, model.get_param(name)) for name in "EPT")
    ids, sizes, segments, n_lines = _lines(*host_tokens(X))
    if is_train and model.attrs["noise"]:
        # A gap makes its line and all older lines older by one. So a line gets older by the
        # number of gaps from itself to its example's current line.
        is_gap = draw_mask(ops, segments.shape, model.attrs["noise"]) == 0
        last = n_lines.cumsum() - 1
        is_gap[last] = False
        n_before = is_gap.cumsum()
        segments = segments + n_before[last].repeat(n_lines) - n_before + is_gap
    segments = numpy.minimum(segments, T.shape[0] - 1)
    places = numpy.minimum(places_in_bags(sizes), P.shape[0] - 1)
    rows, rows_of_P, rows_of_T, owners = upload(ops, ids, places, segments, bag_numbers(sizes))
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

    return Ragged(Y, n_lines), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    # Uniform with a standard deviation of 0.1. The factors P are around 1: at first, a line is
    # nearly a bag of words, in which positions differ a little.
    for name, dim, mean in (("E", "nV", 0), ("P", "nJ", 1), ("T", "nS", 0)):
        shape = (model.get_dim(dim), model.get_dim("nO"))
        model.set_param(name, mean + uniform_init(model.ops, shape, lo=-0.173, hi=0.173))


def _lines(tokens: Any, lengths: Any) -> Tuple[Any, ...]:
    """Sort the tokens by example and line, the oldest line first. Return their ids; the numbers of
    tokens and the segments of the lines; and the number of lines of each example."""
    examples = numpy.arange(len(lengths)) << 32
    keys = examples.repeat(lengths) | (_OLDEST - tokens[:, 1].astype("int64"))
    # Each example has a current line, even if it has no tokens.
    distinct = numpy.unique(numpy.append(keys, examples | _OLDEST))
    sizes = numpy.bincount(numpy.searchsorted(distinct, keys), minlength=len(distinct))
    n_lines = numpy.bincount(distinct >> 32, minlength=len(lengths))
    ids = tokens[numpy.argsort(keys, kind="stable"), 0]
    return ids, sizes.astype("i"), _OLDEST - (distinct & 0xFFFFFFFF), n_lines.astype("i")
