"""SGD with momentum."""

from typing import Any, List, Tuple

from thinc.api import Optimizer
from thinc.optimizers import SGD_DEFAULTS, FloatOrSeq

from ..registry import registry
from .row_sparse import RowSparseOptimizer


class MomentumSGD(RowSparseOptimizer):
    """Apply V = momentum V + dW and W -= learn_rate V, where V is the velocity; with Nesterov's
    momentum, W -= learn_rate (dW + momentum V). Rows without a gradient keep weights and velocity.

    mom1 (Dict): Holds V.
    b1 (float): The momentum.
    """

    kept = ("mom1",)
    kernel = "momentum"

    def __init__(self, learn_rate: FloatOrSeq, *, momentum: float, nesterov: bool, **settings: Any):
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum = {momentum}, but it must be 0.0 or more and below 1.0")
        super().__init__(learn_rate, beta1=momentum, beta2=0.0, **settings)
        self.nesterov = nesterov

    def step_block(self, xp: Any, dW: Any, state: List[Any], n_updates: int) -> Any:
        (speed,) = state
        speed *= xp.float32(self.b1)
        speed += dW
        if not self.nesterov:
            return speed * xp.float32(self.learn_rate)
        dW += xp.float32(self.b1) * speed
        dW *= xp.float32(self.learn_rate)
        return dW

    def kernel_settings(self, scale: float, n_updates: int) -> Tuple[float, ...]:
        shares = (self.b1, 1.0) if self.nesterov else (1.0, 0.0)
        return (scale, self.b1, *shares, self.learn_rate)


@registry.optimizers("thincdialog.MomentumSGD.v1")
def configure_momentum_sgd(
    learn_rate: FloatOrSeq,
    *,
    momentum: float = 0.9,
    nesterov: bool = False,
    L2: FloatOrSeq = SGD_DEFAULTS["L2"],
    L2_is_weight_decay: bool = True,
    grad_clip: FloatOrSeq = SGD_DEFAULTS["grad_clip"],
    use_averages: bool = False,
    average_every: int = 8,
) -> Optimizer:
    """Create an SGD optimizer with momentum, as in PyTorch. In embedding tables, a step only costs
    as much as the rows that the batch used.

    learn_rate (float or schedule): Step size. If the gradient stays the same, the weights move
        1 / (1 - momentum) times as far.
    momentum (float): Fraction of its velocity that a weight keeps, per step (for a table row: per
        use); 0.0 or more and below 1.0.
    nesterov (bool): Whether to use Nesterov's momentum, which looks one step ahead.
    L2 (float): Weight decay; in tables only for the rows used.
    L2_is_weight_decay (bool): Decay the weights, not the gradient.
    grad_clip (float): Largest norm of the whole gradient; 0 for no limit.
    use_averages (bool): Keep a moving average of the weights.
    average_every (int): Steps between two updates of the average, 1 or more.
    RETURNS (Optimizer): For ``FlatParameters.update``.
    RAISES (ValueError): If momentum or average_every is out of range.
    SOURCE: Sutskever et al. 2013, https://proceedings.mlr.press/v28/sutskever13.html
    """
    return MomentumSGD(**locals())  # all arguments, by their names
