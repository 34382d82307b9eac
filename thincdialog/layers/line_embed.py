"""Embedding of lines, aware of word order and of how long ago a line was."""

from typing import Any, Callable, Optional, Tuple, cast

import numpy
from thinc.api import Model
from thinc.initializers import uniform_init
from thinc.types import Floats2d, Ragged
from thinc.util import ArrayInfo, partial

from ..ops.bags import parts_by_key, products_by_key, sum_by_key
from ..ops.dialog_cupy_ops import DialogCupyOps
from ..ops.gpu import kernels
from ..ops.known_numbers import derived
from ..ops.slices import slice_places
from ..ops.table_gradient import TouchedRows
from ..registry import registry
from .gradients import add_rows, no_gradient

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
    if isinstance(ops, DialogCupyOps):
        return _forward_on_device(model, ops, X)
    E = cast(Floats2d, model.get_param("E"))
    P = cast(Floats2d, model.get_param("P"))
    T = cast(Floats2d, model.get_param("T"))
    found = derived(ops, _lines, X.dataXd, X.lengths, P.shape[0], T.shape[0])
    ids, lines, places = found[:3]  # (n_tokens,) each
    segments, sizes, lines_of_examples = found[3:]  # (n_lines,) twice, (n_examples,)
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


def _forward_on_device(
    model: Model[InT, OutT], ops: DialogCupyOps, X: InT
) -> Tuple[OutT, Callable]:
    E, P, T = (cast(Floats2d, model.get_param(name)) for name in ("E", "P", "T"))
    found = derived(ops, _lines_of_kernels, X.dataXd, X.lengths, P.shape[0], T.shape[0])
    ids, lines, places, segments, starts, lines_of_examples = found
    Y = kernels.sum_products(E, ids, P, places, starts, T, segments)  # (n_lines, nO)
    info = ArrayInfo.from_array(Y)

    def backprop(dY: OutT) -> InT:
        d_lines: Any = dY.dataXd
        info.check_consistency(d_lines)
        factors, words = (d_lines, lines, P, places), (d_lines, lines, E, ids)
        model.attrs["touched_rows"].add(model, *products_by_key(ops, ids, *factors))
        add_rows(model, "P", *products_by_key(ops, places, *words))
        add_rows(model, "T", *parts_by_key(ops, d_lines, segments))
        return Ragged(no_gradient(ops, X.dataXd), X.lengths)

    return Ragged(Y, lines_of_examples), backprop


def init(model: Model[InT, OutT], X: Optional[InT] = None, Y: Optional[OutT] = None) -> None:
    ops, nO = model.ops, model.get_dim("nO")
    # Uniform with a standard deviation of 0.1.
    draw = partial(uniform_init, ops, lo=-0.173, hi=0.173)
    model.set_param("E", draw((model.get_dim("nV"), nO)))
    # Factors around 1: a bag of words at first, with the places told apart a little.
    model.set_param("P", 1 + draw((model.get_dim("nJ"), nO)))
    model.set_param("T", draw((model.get_dim("nS"), nO)))


def _lines(tokens: Any, lengths: Any, n_positions: int, n_segments: int) -> Tuple[Any, ...]:
    """Of the tokens, sorted by line: ids, lines, places in the line. Of the lines: segments,
    and how many tokens. Lines of each example."""
    ids, segments = tokens[:, 0], tokens[:, 1].astype("int64")
    # A line's key orders by example, then from the oldest segment to the current one.
    examples = numpy.arange(len(lengths), dtype="int64")
    keys = examples.repeat(lengths) << 32 | (_OLDEST - segments)
    distinct = numpy.unique(numpy.concatenate([keys, examples << 32 | _OLDEST]))
    sizes = numpy.bincount(numpy.searchsorted(distinct, keys), minlength=len(distinct))
    places = slice_places(numpy.zeros_like(sizes), sizes)
    return (
        ids[numpy.argsort(keys, kind="stable")],
        numpy.arange(len(distinct)).repeat(sizes),
        numpy.minimum(places, n_positions - 1),
        numpy.minimum(_OLDEST - (distinct & 0xFFFFFFFF), n_segments - 1),
        sizes.astype("int32"),
        numpy.bincount(distinct >> 32, minlength=len(lengths)).astype("int32"),
    )


def _lines_of_kernels(*given: Any) -> Tuple[Any, ...]:
    """``_lines`` as int32, and where the tokens of each line begin in place of how many it has."""
    ids, lines, places, segments, sizes, lines_of_examples = _lines(*given)
    starts = numpy.concatenate(([0], sizes.cumsum()))
    found = (ids, lines, places, segments, starts, lines_of_examples)
    return tuple(each.astype("i") for each in found)
