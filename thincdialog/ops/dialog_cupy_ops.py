"""Thinc's ops of a GPU, with kernels of our own that never let the host wait."""

from typing import Any, Callable, Dict, Optional, Sequence, Tuple, cast

import numpy
from thinc.api import CupyOps
from thinc.types import DeviceTypes, FloatsXd, Shape

from ..registry import registry
from .dialog_ops import ExactProducts, stream_seed
from .gpu import kernels
from .known_numbers import Draws, KnownNumbers, derived, on_host

# Slowest turn of ``ops.rotation``: once in about this many tokens times two pi.
BASE = 10000.0
# Tables of turns have so many places at least: few batches need larger ones.
_FEWEST_PLACES = 1024
# Numbers in an array of which ``no_gradient`` gives away parts: enough for hundreds of steps.
_N_ZEROS = 1 << 20
_NO_PLACES: Any = numpy.zeros((0, 0), dtype="f")


@registry.ops("thincdialog_cupy")
class DialogCupyOps(ExactProducts, CupyOps):
    """Thinc's CupyOps with products that can be exact (``exact_products``), dropout masks that
    follow from ``seed`` alone, and kernels of our own. What the host knows of a batch it need
    not ask the device for (``known_numbers``).

    device_type (DeviceTypes): "gpu".
    device_id (int): Number of the GPU, from 0.
    """

    name = "thincdialog_cupy"

    def __init__(self, device_type: DeviceTypes = "gpu", device_id: int = 0, **kwargs: Any) -> None:
        super().__init__(device_type, device_id, **kwargs)
        self.known_numbers = KnownNumbers(self.xp, lambda: self._stream)
        self._turns: Dict[int, Tuple[Any, Any]] = {}
        # By type: an array of zeros, and how many of them ``no_gradient`` has given away.
        zeros = self.xp.zeros((_N_ZEROS,), dtype="i")
        self._zeros: Dict[Any, Any] = {zeros.dtype: zeros}
        self._n_zeros: Dict[Any, int] = {}
        self.seed(0)

    def __reduce__(self) -> Tuple[Any, ...]:  # A copy knows nothing.
        return type(self), (self.device_type, self.device_id)

    def seed(self, seed: int, step: int = 0, microbatch: int = 0) -> None:
        """Start the random draws of one microbatch (see ``stream_seed``)."""
        self._stream, self._n_draws = (seed, step, microbatch), 0
        self._seed: Optional[int] = None

    def next_draws(self) -> Draws:
        """For ``derived``: draws of the host, of this place in the microbatch."""
        self._n_draws += 1
        return Draws(self._n_draws)

    def next_mask(self, rate: float) -> kernels.Mask:
        """A mask of dropout that was not there yet."""
        if not rate:
            return kernels.NO_MASK
        if self._seed is None:
            state = stream_seed(*self._stream).generate_state(1, numpy.uint64)
            self._seed = int(state[0])
        self._n_draws += 1
        return kernels.Mask(rate, self._seed, self._n_draws)

    def dropout(self, X: Any, rate: float) -> Tuple[Any, Callable]:
        """X times a mask, and what multiplies another array by the same mask.

        rate (float): At least 0 and below 1.
        """
        mask = self.next_mask(rate)
        return kernels.dropout(X, mask), lambda dY: kernels.dropout(dY, mask)

    def get_dropout_mask(self, shape: Shape, drop: Optional[float]) -> FloatsXd:
        """Factors for dropout: 0 with probability ``drop``, else 1 / (1 - drop). The same on
        every GPU.

        shape (Shape): Shape of the mask.
        drop (Optional[float]): Probability of zeroing a cell; None or 0 for none.
        RETURNS (FloatsXd): Shape ``shape``, float32.
        """
        if drop is None or drop <= 0:
            return cast(FloatsXd, self.xp.ones(shape, dtype="f"))
        if drop >= 1:
            return cast(FloatsXd, self.xp.zeros(shape, dtype="f"))
        return cast(FloatsXd, kernels.dropout_mask(shape, self.next_mask(drop)))

    def no_gradient(self, X: Any) -> Any:
        """Zeros like X, for input without a gradient, such as ids. They are cut from a larger
        array, each part of it once, because a layer may add to them in place."""
        zeros = self._zeros.get(X.dtype)
        start = self._n_zeros.get(X.dtype, 0)
        if zeros is None or zeros.size < start + X.size:
            zeros = self._zeros[X.dtype] = self.xp.zeros((max(_N_ZEROS, X.size),), dtype=X.dtype)
            start = 0
        self._n_zeros[X.dtype] = start + X.size
        return zeros[start : start + X.size].reshape(X.shape)

    def is_no_gradient(self, X: Any) -> bool:
        """Whether it comes from ``no_gradient``."""
        zeros = self._zeros.get(X.dtype)
        return zeros is not None and X.base is zeros

    # --- products -----------------------------------------------------------------

    def add_product(
        self, out: Any, x: Any, y: Any, *, trans1: bool = False, trans2: bool = False
    ) -> Any:
        """The product of x and y, transposed if wanted, is added to ``out`` in place, which is
        contiguous."""
        if x.size and y.size:
            turned = ("T" if trans else "N" for trans in (trans1, trans2))
            x, y = (self.xp.ascontiguousarray(each, dtype="f") for each in (x, y))
            self.xp.cublas.gemm(*turned, x, y, out, 1.0, 1.0)
        return out

    def linear(self, X: Any, W: Any, b: Any, *, is_cut: bool = False) -> Any:
        """Rows of X times the rows of W, plus b; what is below 0 becomes 0 if it is cut."""
        return kernels.add_bias(self.gemm(X, W, trans2=True), b, is_cut=is_cut)

    def backprop_linear(
        self, dY: Any, X: Any, W: Any, dW: Any, db: Any, Y: Any = None, into: Any = None
    ) -> Any:
        """The gradient of X; those of W and b are added to dW and db.

        Y (Optional[Floats2d]): Of ``linear``, if it was cut.
        into (Optional[Floats2d]): To add the gradient of X to.
        """
        dY = kernels.backprop_bias(dY, db, Y)
        self.add_product(dW, dY, X, trans1=True)
        return self.gemm(dY, W) if into is None else self.add_product(into, dY, W)

    def memory_hops(self, X: Any, lengths: Any, n_hops: int) -> Tuple[Any, Callable]:
        """Readings of memories, led by the last row of each example; see ``MemoryHops``.

        X (Floats2d): Shape (n_rows, (n_hops + 1) * width).
        lengths (Ints1d): Rows of each example, one or more.
        RETURNS (Tuple[Floats2d, Callable]): What is known in the end, shape (n_examples, width);
            and what gives the gradient of X for its gradient.
        """
        X = self.as_contig(X)
        (starts,) = derived(self, _starts, lengths)
        Y, U, P = kernels.memory_hops(X, starts, n_hops)

        def backprop(dY: Any) -> Any:
            return kernels.backprop_memory_hops(dY, X, U, P, starts)

        return Y, backprop

    def bilstm(self, X: Any, W: Any, U: Any, b: Any, lengths: Any) -> Tuple[Any, Callable]:
        """An LSTM over each sequence from either end: all steps of both in one kernel.

        X (Floats2d): Of all sequences, one after the other, shape (n_rows, nI).
        W, U, b: Shapes (2, 4 nH, nI), (2, 4 nH, nH) and (2, 4 nH); gates i, f, o, g.
        lengths (Ints1d): Rows of each sequence.
        RETURNS (Tuple[Floats2d, Callable]): The outputs of both side by side, shape
            (n_rows, 2 nH); and what gives the gradient of X for theirs, and adds to those of
            W, U and b: ``backprop(dY, dW, dU, db)``.
        """
        sequences = derived(self, _longest_first, lengths)
        weights = W.reshape((-1, W.shape[2]))
        G = self.gemm(X, weights, trans2=True)  # (n_rows, 8 nH)
        C, H = kernels.lstm(G, U, b, *sequences)

        def backprop(dY: Any, dW: Any, dU: Any, db: Any) -> Any:
            dG, Z = kernels.backprop_lstm(dY, X, (G, C, H), U, *sequences)
            kernels.add_lstm_gradients(self.gemm(dG, Z, trans1=True), dW, dU, db)
            return self.gemm(dG, weights)

        return H.reshape((X.shape[0], -1)), backprop

    # --- groups of rows -----------------------------------------------------------

    def reduce_sum(self, X: Any, lengths: Any) -> Any:
        return kernels.sum_rows(X, None, *derived(self, _starts, lengths))

    def reduce_mean(self, X: Any, lengths: Any) -> Any:
        starts, shares = derived(self, _starts_and_shares, lengths)
        return kernels.sum_rows(X, None, starts, factors=shares)

    def reduce_max(self, X: Any, lengths: Any) -> Tuple[Any, Any]:
        return kernels.max_rows(X, *derived(self, _starts_of_full, lengths))

    def backprop_reduce_sum(self, d_sums: Any, lengths: Any) -> Any:
        return kernels.sum_rows(d_sums, *derived(self, _repeats, lengths))

    def backprop_reduce_mean(self, d_means: Any, lengths: Any) -> Any:
        _, shares = derived(self, _starts_and_shares, lengths)
        return kernels.sum_rows(d_means, *derived(self, _repeats, lengths), weights=shares)

    def backprop_reduce_max(self, d_maxes: Any, which: Any, lengths: Any) -> Any:
        (starts,) = derived(self, _starts_of_full, lengths)
        n_rows = int(on_host(self, starts)[-1])
        return kernels.backprop_max_rows(d_maxes, which, starts, n_rows)

    def pool_max(self, X: Any, lengths: Any) -> Tuple[Any, Any]:
        """As ``reduce_max``, but an empty sequence is allowed and gives zeros."""
        return kernels.max_rows(X, *derived(self, _starts, lengths))

    def backprop_pool_max(self, d_maxes: Any, which: Any, lengths: Any) -> Any:
        """See ``pool_max``."""
        (starts,) = derived(self, _starts, lengths)
        n_rows = int(on_host(self, starts)[-1])
        return kernels.backprop_max_rows(d_maxes, which, starts, n_rows)

    def seq2col(self, seq: Any, nW: int, *, lengths: Any = None) -> Any:
        if lengths is None:
            return super().seq2col(seq, nW)
        (bounds,) = derived(self, _bounds, lengths)
        return kernels.windows(seq, bounds, nW)

    def backprop_seq2col(self, dY: Any, nW: int, *, lengths: Any = None) -> Any:
        if lengths is None:
            return super().backprop_seq2col(dY, nW)
        return self.backprop_seq2col_beside(dY, nW, lengths, None)

    def backprop_seq2col_beside(self, dY: Any, nW: int, lengths: Any, dZ: Any) -> Any:
        """The gradient of the rows, plus ``dZ`` of what they were added to."""
        (bounds,) = derived(self, _bounds, lengths)
        return kernels.backprop_windows(dY, bounds, nW, dZ)

    def backprop_maxout(self, dY: Any, which: Any, P: int) -> Any:
        return kernels.backprop_maxout(dY, which, P)

    # --- rows -----------------------------------------------------------------------

    def l2_normalise(self, X: Any, shortest: float) -> Tuple[Any, Any]:
        """See ``DialogFastOps``, here and below."""
        return kernels.l2_normalise(X, shortest)

    def backprop_l2_normalise(self, dY: Any, Y: Any, lengths: Any, shortest: float) -> Any:
        return kernels.backprop_l2_normalise(dY, Y, lengths, shortest)

    def layer_norm(self, X: Any, G: Any, b: Any) -> Tuple[Any, Any, Any]:
        return kernels.layer_norm(X, G, b)

    def backprop_layer_norm(
        self, dY: Any, G: Any, hat: Any, scales: Any, dG: Any = None, db: Any = None
    ) -> Tuple[Any, Any, Any]:
        return kernels.backprop_layer_norm(dY, G, hat, scales, dG, db)

    def best_cells(
        self, X: Any, sizes: Sequence[int], n_best: int, behind: Any, right: Sequence[int]
    ) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """The highest cells of each row, of equals the first: on the host, which waits for them.

        X (Floats1d): All rows, one after the other.
        sizes (Sequence[int]): Cells of each row.
        behind (Optional[np.ndarray]): Cells that stand behind all others, bools, shaped like X.
        right (Sequence[int]): A place in each row, or -1.
        RETURNS (Tuple[np.ndarray, np.ndarray]): Their places in the row, shape (n_rows, n_best),
            int32, -1 where it has no more; and, shape (n_rows, n_best + 5), float32, these
            cells; the highest one not behind, and the sum of exp(cell - highest) of such; the
            same of all cells; and the cell of the right place.
        """
        ends = numpy.cumsum(sizes, dtype="i8")
        given = self.xp.asarray(numpy.concatenate(([0], ends, right)).astype("i8"))
        n = len(ends) + 1
        is_behind = None if behind is None else self.xp.asarray(behind)
        return kernels.best_cells(X, given[:n], n_best, is_behind, given[n:])

    # --- activations ------------------------------------------------------------------

    def swiglu(self, Z: Any, b: Any) -> Any:
        """See ``ops.swiglu``."""
        return kernels.activate(Z, b, "swiglu")

    def backprop_swiglu(self, dY: Any, Z: Any, db: Any) -> Any:
        """See ``ops.swiglu``."""
        return kernels.backprop_activate(dY, Z, db, "swiglu")

    # --- attention --------------------------------------------------------------------

    def attend(self, QKV: Any, lengths: Any, n_heads: int) -> Tuple[Any, Callable[[Any], Any]]:
        """See ``ops.attention.attend``."""
        (bounds,) = derived(self, _bounds, lengths)
        Y, logs = kernels.attend(QKV, bounds, n_heads)
        return Y, lambda dY: kernels.backprop_attend(dY, Y, logs, QKV, bounds)

    def attend_with(
        self, queries: Any, X: Any, lengths: Any
    ) -> Tuple[Any, Callable[[Any], Tuple[Any, Any]]]:
        """See ``ops.attention.attend_with``."""
        X, (starts,) = self.as_contig(X), derived(self, _starts, lengths)
        Y, P = kernels.attend_with(self.gemm(X, queries, trans2=True), X, starts)

        def backprop(dY: Any) -> Tuple[Any, Any]:
            owners, _ = derived(self, _repeats, lengths)
            dS, dX = kernels.backprop_attend_with(dY, P, queries, X, starts, owners)
            return self.gemm(dS, X, trans1=True), dX

        return Y, backprop

    def turns(self, places: Any, half: int) -> Tuple[Any, Any, Any]:
        """For kernels that rotate: the places, int64, and cosine and sine of their turns.

        half (int): Of the width of a head.
        """
        highest = int(on_host(self, places).max(initial=0))
        cosines, sines = self._turns.get(half, (_NO_PLACES, _NO_PLACES))
        if cosines.shape[0] <= highest:
            n_places = max(_FEWEST_PLACES, 1 << highest.bit_length())
            cosines, sines = kernels.rotation_tables(n_places, half, BASE)
            self._turns[half] = cosines, sines
        return places, cosines, sines


def _starts(lengths: Any) -> Tuple[Any, ...]:
    return (numpy.concatenate(([0], lengths.cumsum())).astype("i"),)


def _longest_first(lengths: Any) -> Tuple[Any, ...]:
    return numpy.argsort(-lengths, kind="stable").astype("i"), *_starts(lengths)


def _starts_and_shares(lengths: Any) -> Tuple[Any, ...]:
    return (*_starts(lengths), (1 / numpy.maximum(lengths, 1)).astype("f"))


def _starts_of_full(lengths: Any) -> Tuple[Any, ...]:
    if len(lengths) and lengths.min() < 1:
        raise ValueError("all sequence lengths must be >= 1")
    return _starts(lengths)


def _repeats(lengths: Any) -> Tuple[Any, ...]:
    """The group of each row, and the rows themselves as groups of one."""
    owners = numpy.arange(len(lengths), dtype="i").repeat(lengths)
    return owners, numpy.arange(len(owners) + 1, dtype="i")


def _bounds(lengths: Any) -> Tuple[Any, ...]:
    """Where each row's group begins and ends."""
    ends = lengths.cumsum()
    return (numpy.stack((ends - lengths, ends)).repeat(lengths, axis=1).astype("i"),)
