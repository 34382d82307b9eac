"""Thinc's ops for a GPU, with kernels that never make the host wait."""

from typing import Any, Optional, Tuple, cast

import numpy
from thinc.api import CupyOps
from thinc.types import DeviceTypes, FloatsXd, Shape

from ..registry import registry
from .devices import on_host, upload
from .dialog_ops import DrawsAndProducts, stream_seed
from .gpu import kernels


@registry.ops("thincdialog_cupy")
class DialogCupyOps(DrawsAndProducts, CupyOps):
    """Extend Thinc's CupyOps: products can be exact (``exact_products``), dropout masks depend only
    on ``seed``, and the lengths of sequences stay on the host.

    device_type (DeviceTypes): "gpu".
    device_id (int): Number of the GPU, from 0.
    """

    name = "thincdialog_cupy"

    def __init__(self, device_type: DeviceTypes = "gpu", device_id: int = 0, **kwargs: Any) -> None:
        super().__init__(device_type, device_id, **kwargs)
        self.seed(0)

    def seed(self, seed: int, step: int = 0, microbatch: int = 0) -> None:
        super().seed(seed, step, microbatch)
        self._mask_seed: Optional[int] = None
        self._n_masks = 0

    def get_dropout_mask(self, shape: Shape, drop: Optional[float]) -> FloatsXd:
        """Return factors for dropout: 0 with probability ``drop``, else 1 / (1 - drop). They are
        the same on every GPU.

        shape (Shape): Shape of the mask.
        drop (Optional[float]): Probability of zeroing a value; None or 0 for no dropout.
        RETURNS (FloatsXd): Shape ``shape``, float32.
        """
        if drop is None or drop <= 0:
            return cast(FloatsXd, self.xp.ones(shape, dtype="f"))
        if drop >= 1:
            return cast(FloatsXd, self.xp.zeros(shape, dtype="f"))
        if self._mask_seed is None:
            state = stream_seed(*self._stream).generate_state(1, numpy.uint64)
            self._mask_seed = int(state[0])
        self._n_masks += 1
        return cast(FloatsXd, kernels.dropout_mask(shape, drop, self._mask_seed, self._n_masks))

    # --- groups of rows -----------------------------------------------------------

    def reduce_sum(self, X: Any, lengths: Any) -> Any:
        return kernels.sum_rows(X, None, *upload(self, starts_of(lengths)))

    def reduce_mean(self, X: Any, lengths: Any) -> Any:
        return kernels.sum_rows(X, None, *upload(self, starts_of(lengths), _shares(lengths)))

    def reduce_max(self, X: Any, lengths: Any) -> Tuple[Any, Any]:
        lengths = on_host(lengths)
        if len(lengths) and lengths.min() < 1:
            raise ValueError("all sequence lengths must be >= 1")
        return kernels.max_rows(X, *upload(self, starts_of(lengths)))

    def backprop_reduce_sum(self, d_sums: Any, lengths: Any) -> Any:
        (owners,) = upload(self, _owners(lengths))
        return d_sums.take(owners, axis=0)

    def backprop_reduce_mean(self, d_means: Any, lengths: Any) -> Any:
        owners, shares = upload(self, _owners(lengths), _shares(lengths))
        return (d_means * shares[:, None]).take(owners, axis=0)

    def backprop_reduce_max(self, d_maxes: Any, which: Any, lengths: Any) -> Any:
        starts = starts_of(lengths)
        (on_device,) = upload(self, starts)
        return kernels.backprop_max_rows(d_maxes, which, on_device, int(starts[-1]))

    def seq2col(self, seq: Any, nW: int, *, lengths: Any = None) -> Any:
        if lengths is None:
            return super().seq2col(seq, nW)
        return kernels.windows(seq, upload(self, _bounds(lengths))[0], nW)

    def backprop_seq2col(self, dY: Any, nW: int, *, lengths: Any = None) -> Any:
        if lengths is None:
            return super().backprop_seq2col(dY, nW)
        return kernels.backprop_windows(dY, upload(self, _bounds(lengths))[0], nW)

    def backprop_maxout(self, dY: Any, which: Any, P: int) -> Any:
        pieces = self.xp.arange(P, dtype="i")
        return self.xp.where(which[..., None] == pieces, dY[..., None], self.xp.float32(0))


def starts_of(lengths: Any) -> Any:
    """Return the index of the first row of each group, and the end of the last one; int32, on the
    host.

    lengths (Ints1d): Number of rows of each group, shape (n_groups,).
    """
    return numpy.concatenate(([0], on_host(lengths).cumsum())).astype("i")


def _owners(lengths: Any) -> Any:
    """Return the group of each row."""
    lengths = on_host(lengths)
    return numpy.arange(len(lengths), dtype="i").repeat(lengths)


def _shares(lengths: Any) -> Any:
    return (1 / numpy.maximum(on_host(lengths), 1)).astype("f")


def _bounds(lengths: Any) -> Any:
    """Return the begin and end of each row's group, shape (2, n_rows)."""
    lengths = on_host(lengths)
    ends = lengths.cumsum()
    return numpy.stack((ends - lengths, ends)).repeat(lengths, axis=1).astype("i")
