"""Thinc's ops of a GPU, with kernels of our own that never let the host wait."""

from typing import Any, Callable, Dict, Optional, Tuple, cast

import numpy
from thinc.api import CupyOps
from thinc.types import DeviceTypes, FloatsXd, Shape

from ..registry import registry
from .dialog_ops import ExactProducts, stream_seed
from .gpu import kernels
from .known_numbers import Draws, KnownNumbers, derived, on_host

LEAST_VARIANCE = 1e-8
# Slowest turn of ``ops.rotation``: once in about this many tokens times two pi.
BASE = 10000.0
# Tables of turns have so many places at least: few batches need larger ones.
_FEWEST_PLACES = 1024
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
        self.known_numbers = KnownNumbers(self.xp, self._entropy)
        self._turns: Dict[int, Tuple[Any, Any]] = {}
        self.seed(0)

    def __reduce__(self) -> Tuple[Any, ...]:  # A copy knows nothing.
        return type(self), (self.device_type, self.device_id)

    def seed(self, seed: int, step: int = 0, microbatch: int = 0) -> None:
        """Start the random draws of one microbatch (see ``stream_seed``)."""
        self._stream, self._n_draws = (seed, step, microbatch), 0
        self._seed: Optional[int] = None

    def _entropy(self, number: int) -> numpy.random.SeedSequence:
        return numpy.random.SeedSequence((*self._stream, number))

    def next_draws(self) -> Draws:
        """For ``derived``: draws of the host, of this place in the microbatch."""
        self._n_draws += 1
        return Draws(self._n_draws)

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
        return cast(FloatsXd, kernels.dropout_mask(shape, *self.next_mask(drop)))

    def next_mask(self, drop: float) -> kernels.Mask:
        """Of the mask that is drawn next, the rate, the seed and its number."""
        if self._seed is None:
            state = stream_seed(*self._stream).generate_state(1, numpy.uint64)
            self._seed = int(state[0])
        self._n_draws += 1
        return drop, self._seed, self._n_draws

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

    def seq2col(self, seq: Any, nW: int, *, lengths: Any = None) -> Any:
        if lengths is None:
            return super().seq2col(seq, nW)
        (bounds,) = derived(self, _bounds, lengths)
        return kernels.windows(seq, bounds, nW)

    def backprop_seq2col(self, dY: Any, nW: int, *, lengths: Any = None) -> Any:
        if lengths is None:
            return super().backprop_seq2col(dY, nW)
        (bounds,) = derived(self, _bounds, lengths)
        return kernels.backprop_windows(dY, bounds, nW)

    def backprop_maxout(self, dY: Any, which: Any, P: int) -> Any:
        return kernels.backprop_maxout(dY, which, P)

    # --- rows -----------------------------------------------------------------------

    def l2_normalise(self, X: Any, shortest: float) -> Tuple[Any, Any]:
        """See ``DialogFastOps``, here and below."""
        return kernels.l2_normalise(X, shortest)

    def backprop_l2_normalise(self, dY: Any, Y: Any, lengths: Any, shortest: float) -> Any:
        return kernels.backprop_l2_normalise(dY, Y, lengths, shortest)

    def layer_norm(self, X: Any, G: Any, b: Any) -> Tuple[Any, Any, Any]:
        return kernels.layer_norm(X, G, b, LEAST_VARIANCE)

    def backprop_layer_norm(self, dY: Any, G: Any, hat: Any, scales: Any) -> Tuple[Any, Any, Any]:
        return kernels.backprop_layer_norm(dY, G, hat, scales)

    # --- attention --------------------------------------------------------------------

    def attend(self, QKV: Any, lengths: Any, n_heads: int) -> Tuple[Any, Callable[[Any], Any]]:
        """See ``ops.attention.attend``."""
        (bounds,) = derived(self, _bounds, lengths)
        Y, logs = kernels.attend(QKV, bounds, n_heads)
        return Y, lambda dY: kernels.backprop_attend(dY, Y, logs, QKV, bounds)

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
