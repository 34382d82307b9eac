"""SGD and Adagrad that update only the rows of an embedding table that the batch used."""

from typing import Any, List, Tuple

from thinc.api import Optimizer
from thinc.optimizers import SGD_DEFAULTS, FloatOrSeq

from ..registry import registry
from .row_sparse import RowSparseOptimizer


class SparseSGD(RowSparseOptimizer):
    """Apply plain stochastic gradient descent, W -= learn_rate dW, which needs no state."""

    kernel = "sgd"

    def __init__(self, learn_rate: FloatOrSeq, **settings: Any):
        super().__init__(learn_rate, beta1=0.0, beta2=0.0, **settings)

    def step_block(self, xp: Any, dW: Any, state: List[Any], n_updates: int) -> Any:
        dW *= xp.float32(self.learn_rate)
        return dW

    def kernel_settings(self, scale: float, n_updates: int) -> Tuple[float, ...]:
        return (scale * self.learn_rate,)


@registry.optimizers("thincdialog.SparseSGD.v1")
def configure_sparse_sgd(
    learn_rate: FloatOrSeq,
    *,
    L2: FloatOrSeq = SGD_DEFAULTS["L2"],
    L2_is_weight_decay: bool = True,
    grad_clip: FloatOrSeq = SGD_DEFAULTS["grad_clip"],
    use_averages: bool = False,
    average_every: int = 8,
) -> Optimizer:
    """Create a plain SGD optimizer for models with embedding tables: a step only costs as much as
    the rows that the batch used.

    learn_rate (float or schedule): Step size.
    L2 (float): Weight decay; in tables only for the rows used.
    L2_is_weight_decay (bool): Decay the weights, not the gradient.
    grad_clip (float): Largest norm of the whole gradient; 0 for no limit.
    use_averages (bool): Keep a moving average of the weights.
    average_every (int): Steps between two updates of the average, 1 or more.
    RETURNS (Optimizer): For ``FlatParameters.update``.
    SOURCE: Robbins and Monro 1951, https://doi.org/10.1214/aoms/1177729586
    """
    return SparseSGD(**locals())  # all arguments, by their names


class SparseAdagrad(RowSparseOptimizer):
    """Apply SGD with smaller steps for weights whose gradients were large: W -= learn_rate dW /
    (sqrt(S) + eps), where S is the sum of the squares of all gradients so far.

    mom2 (Dict): Holds S.
    """

    kept = ("mom2",)
    kernel = "adagrad"

    def __init__(self, learn_rate: FloatOrSeq, **settings: Any):
        super().__init__(learn_rate, beta1=0.0, beta2=0.0, **settings)

    def step_block(self, xp: Any, dW: Any, state: List[Any], n_updates: int) -> Any:
        (squares,) = state
        root = dW * dW
        squares += root
        xp.sqrt(squares, out=root)
        root += xp.float32(self.eps)
        dW /= root
        dW *= xp.float32(self.learn_rate)
        return dW

    def kernel_settings(self, scale: float, n_updates: int) -> Tuple[float, ...]:
        return (scale, self.eps, self.learn_rate)


@registry.optimizers("thincdialog.SparseAdagrad.v1")
def configure_sparse_adagrad(
    learn_rate: FloatOrSeq,
    *,
    eps: FloatOrSeq = 1e-8,
    L2: FloatOrSeq = SGD_DEFAULTS["L2"],
    L2_is_weight_decay: bool = True,
    grad_clip: FloatOrSeq = SGD_DEFAULTS["grad_clip"],
    use_averages: bool = False,
    average_every: int = 8,
) -> Optimizer:
    """Create an Adagrad optimizer for models with embedding tables: a step only costs as much as
    the rows that the batch used.

    learn_rate (float or schedule): Step size.
    eps (float): Added to the root of the sum of squares.
    L2 (float): Weight decay; in tables only for the rows used.
    L2_is_weight_decay (bool): Decay the weights, not the gradient.
    grad_clip (float): Largest norm of the whole gradient; 0 for no limit.
    use_averages (bool): Keep a moving average of the weights.
    average_every (int): Steps between two updates of the average, 1 or more.
    RETURNS (Optimizer): For ``FlatParameters.update``.
    SOURCE: Duchi, Hazan and Singer 2011, https://jmlr.org/papers/v12/duchi11a.html
    """
    return SparseAdagrad(**locals())  # all arguments, by their names
