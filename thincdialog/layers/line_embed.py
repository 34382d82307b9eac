"""Embedding of lines, aware of word order and of how long ago a line was."""

from typing import Callable, Optional, Tuple, cast

from thinc.api import Model, Ops
from thinc.initializers import uniform_init
from thinc.types import Floats2d, Ints1d, Ints2d, Ragged
from thinc.util import ArrayInfo, partial

from ..ops.bags import bag_numbers, sum_by_key
from ..ops.table_gradient import TouchedRows
from ..registry import registry

InT = Ragged
OutT = Ragged

_OLDEST = 0x7FFFFFFF  # larger than any segment


@registry.layers("thincdialog.LineEmbed.v1")
def LineEmbed(
    nO: int, nV: Optional[int] = None, *, n_positions: int = 32, n_segments: int = 64
) -> Model[InT, OutT]:
    """One vector for each segment (line, turn) of an example, the current one last.

        Y[line] = T[segment] + sum_j E[id_j] * P[j]

    The learned factors P tell the words' places in the line apart, T how many lines
    back it is. Places and segments beyond the last share its vector.

    nO (int): Width of a line's vector.
    nV (Optional[int]): Number of token ids; set before initialize (``set_vocabulary``).
    n_positions (int): Places in a line told apart, 1 or more.
    n_segments (int): Segments told apart, 1 or more.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): Output shape (n_lines, nO); each example has at
        least one line, which is for segment 0 and without words if it has none.
    RAISES (ValueError): If n_positions or n_segments is below 1.
    SOURCE: Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895, section 4.1, with
        learned factors in place of the fixed position encoding
    """
    if n_positions < 1 or n_segments < 1:
        raise ValueError(
            f"LineEmbed: n_positions = {n_positions} and n_segments = {n_segments} must be above 0"
        )
    return Model(
        "line_embed",
        forward,
        init=init,
        dims={"nO": nO, "nV": nV, "nJ": n_positions, "nS": n_segments},
        params={"E": None, "P": None, "T": None},
        attrs={"touched_rows": TouchedRows()},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    ops, xp = model.ops, model.ops.xp
    E = cast(Floats2d, model.get_param("E"))
    P = cast(Floats2d, model.get_param("P"))
    T = cast(Floats2d, model.get_param("T"))
    # (n_tokens,), (n_lines,), (n_lines,), (n_examples,)
    ids, segments, sizes, lines_of_examples = _lines(ops, X)
    starts = xp.cumsum(sizes) - sizes
    lines = bag_numbers(ops, sizes, ids.shape[0])  # (n_tokens,)
    places = xp.minimum(xp.arange(ids.shape[0]) - starts[lines], P.shape[0] - 1)
    segments = xp.minimum(segments, T.shape[0] - 1)
    words, factors = E[ids], P[places]  # (n_tokens, nO) each
    Y = T[segments]  # (n_lines, nO)
    if ids.shape[0]:
        Y += ops.reduce_sum(words * factors, sizes)
    info = ArrayInfo.from_array(Y)

    def backprop(dY: OutT) -> InT:
        d_lines = cast(Floats2d, dY.dataXd)
        info.check_consistency(d_lines)
        d_products = d_lines[lines]  # (n_tokens, nO)
        model.attrs["touched_rows"].add(model, *sum_by_key(ops, d_products * factors, ids))
        dP, dT = xp.zeros_like(P), xp.zeros_like(T)
        for gradient, d_rows, keys in ((dP, d_products * words, places), (dT, d_lines, segments)):
            rows, values = sum_by_key(ops, d_rows, keys)  # (n,), (n, nO)
            gradient[rows] = values
        model.inc_grad("P", dP)
        model.inc_grad("T", dT)
        return Ragged(xp.zeros_like(X.dataXd), X.lengths)

    return Ragged(Y, lines_of_examples), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    ops, nO = model.ops, model.get_dim("nO")
    # Uniform with a standard deviation of 0.1.
    draw = partial(uniform_init, ops, lo=-0.173, hi=0.173)
    model.set_param("E", draw((model.get_dim("nV"), nO)))
    # Factors around 1: a bag of words at first, with the places told apart a little.
    model.set_param("P", 1 + draw((model.get_dim("nJ"), nO)))
    model.set_param("T", draw((model.get_dim("nS"), nO)))


def _lines(ops: Ops, X: Ragged) -> Tuple[Ints1d, Ints1d, Ints1d, Ints1d]:
    """Ids sorted by line; segment and number of tokens of each line; lines of each example."""
    xp, n_examples = ops.xp, X.lengths.shape[0]
    tokens = cast(Ints2d, X.dataXd)
    ids, segments = tokens[:, 0], tokens[:, 1].astype("int64")
    # A line's key orders by example, then from the oldest segment to the current one.
    keys = bag_numbers(ops, X.lengths, ids.shape[0]) << 32 | (_OLDEST - segments)
    current = xp.arange(n_examples, dtype="int64") << 32 | _OLDEST
    distinct = xp.unique(xp.concatenate([keys, current]))
    sizes = xp.bincount(xp.searchsorted(distinct, keys), minlength=distinct.shape[0])
    n_lines = xp.bincount(distinct >> 32, minlength=n_examples)
    return (
        ids[xp.argsort(keys, kind="stable")],
        _OLDEST - (distinct & 0xFFFFFFFF),
        sizes.astype("int32"),
        n_lines.astype("int32"),
    )
