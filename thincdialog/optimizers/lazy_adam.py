"""Adam that updates only the rows of an embedding table that the batch used."""

from typing import Any, List, Sequence, Tuple

from thinc.api import Optimizer
from thinc.optimizers import ADAM_DEFAULTS, FloatOrSeq
from thinc.util import get_array_module

from ..ops.gpu import kernels
from ..registry import registry
from .moments import least_second_moment
from .row_sparse import RowSparseOptimizer, Segment, dense_and_tables


class LazyAdam(RowSparseOptimizer):
    """Apply Adam only to table rows with a gradient. The weights and moments of other rows do not
    change (as in PyTorch's SparseAdam), but the bias correction counts all steps.

    nu (float): Weight of the first moment in a step, from 0 to 1; the newest gradient has the
        rest. 1 is Adam; hogwild workers use less (``stale_settings``).
    SOURCE: nu, Ma and Yarats 2019, https://arxiv.org/abs/1810.06801
    """

    kept = ("mom1", "mom2")
    kernel = "adam"
    nu = 1.0

    def _rate(self, n_updates: int) -> float:
        fix = (1.0 - self.b2**n_updates) ** 0.5 / (1.0 - self.b1**n_updates)
        return self.learn_rate * fix

    def _newest(self, n_updates: int) -> float:
        """Return the factor of the newest gradient, which is added to the first moment. It cancels
        the bias correction in ``_rate``, which the gradient does not need."""
        return (1.0 - self.nu) * (1.0 - self.b1**n_updates)

    def _least(self, n_updates: int) -> float:
        """Return the smallest allowed ratio of the second moment to the square of the first; 0 for
        any. A row that workers share may have the first moment of one worker and a much smaller
        second moment of another, and such a step would ruin the row."""
        return least_second_moment(self.b1, self.b2, n_updates) if self.is_shared else 0.0

    def step_block(self, xp: Any, dW: Any, state: List[Any], n_updates: int) -> Any:
        mom1, mom2 = state
        mom1 *= xp.float32(self.b1)
        mom1 += xp.float32(1 - self.b1) * dW
        ahead = mom1
        if self.nu != 1.0:
            ahead = xp.float32(self.nu) * mom1 + xp.float32(self._newest(n_updates)) * dW
        dW *= dW
        dW *= xp.float32(1 - self.b2)
        mom2 *= xp.float32(self.b2)
        mom2 += dW
        least = self._least(n_updates)
        if least:
            xp.maximum(mom2, xp.float32(least) * (mom1 * mom1), out=mom2)
        step = xp.sqrt(mom2, out=dW)
        step += xp.float32(self.eps)
        xp.divide(ahead, step, out=step)
        step *= xp.float32(self._rate(n_updates))
        return step

    def _has_kernel(self) -> bool:
        return self.L2_is_weight_decay or not self.L2

    def _step_of_kernel(
        self, arrays: Any, gradients: Any, parts: Sequence[Segment], found: Any, n_updates: int
    ) -> None:
        _, *settings = self.kernel_settings(1.0, n_updates)
        decay = float(self.learn_rate * self.L2)
        bounds, tables = dense_and_tables(parts)
        W, *moments = arrays
        asarray: Any = get_array_module(W).asarray
        of_tables = [(part.start, asarray(part.rows, dtype="i"), part.d_rows) for part in tables]
        all_arrays = (W, gradients, *moments)
        kernels.adam(all_arrays, found, bounds, of_tables, (*settings, decay))

    def kernel_settings(self, scale: float, n_updates: int) -> Tuple[float, ...]:
        moments = (scale, self.b1, self.b2, self._least(n_updates), self.eps)
        return (*moments, self._rate(n_updates), self.nu, self._newest(n_updates))


@registry.optimizers("thincdialog.LazyAdam.v1")
def configure_lazy_adam(
    learn_rate: FloatOrSeq = ADAM_DEFAULTS["learn_rate"],
    *,
    beta1: FloatOrSeq = ADAM_DEFAULTS["beta1"],
    beta2: FloatOrSeq = ADAM_DEFAULTS["beta2"],
    eps: FloatOrSeq = ADAM_DEFAULTS["eps"],
    L2: FloatOrSeq = ADAM_DEFAULTS["L2"],
    L2_is_weight_decay: bool = True,
    grad_clip: FloatOrSeq = ADAM_DEFAULTS["grad_clip"],
    use_averages: bool = False,
    average_every: int = 8,
) -> Optimizer:
    """Create an Adam optimizer for models with embedding tables: a step only costs as much as the
    rows that the batch used.

    learn_rate (float or schedule): Step size.
    beta1 (float): Decay of the first moment, per step (for a table row: per use).
    beta2 (float): Decay of the second moment, per step (for a table row: per use).
    eps (float): Added to the root of the second moment.
    L2 (float): Weight decay; in tables only for the rows used.
    L2_is_weight_decay (bool): Decay the weights (AdamW), not the gradient.
    grad_clip (float): Largest norm of the whole gradient; 0 for no limit.
    use_averages (bool): Keep a moving average of the weights.
    average_every (int): Steps between two updates of the average, 1 or more.
    RETURNS (Optimizer): For ``FlatParameters.update``.
    SOURCE: Kingma and Ba 2015, https://arxiv.org/abs/1412.6980; lazy rows as in
        torch.optim.SparseAdam
    """
    return LazyAdam(**locals())  # all arguments, by their names
