"""Cross-entropy over classes."""

from typing import Any, Optional, Tuple

from thinc.types import Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module, is_numpy_array

from ..ops.gpu import kernels
from ..registry import registry


@registry.losses("thincdialog.ClassSoftmax.v1")
class ClassSoftmax:
    """Compute the softmax cross-entropy of the right class: ``loss(logits, targets, weights=None)``
    returns the gradient and the losses.

        loss = -w[right] * ((1 - e) log P[right] + e * mean over c of log P[c])

    label_smoothing (float): The e above, at least 0 and below 1.
    RAISES (ValueError): If label_smoothing is out of range.
    SOURCE: Szegedy et al. 2016, https://arxiv.org/abs/1512.00567, section 7
    """

    def __init__(self, label_smoothing: float = 0.0):
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(
                f"label_smoothing = {label_smoothing}, but it must be at least 0 and below 1"
            )
        self.label_smoothing = label_smoothing

    def __call__(
        self, logits: Floats2d, targets: Ints1d, weights: Optional[Floats1d] = None
    ) -> Tuple[Floats2d, Floats1d]:
        """Compute loss and gradient.

        logits (Floats2d): Shape (n_examples, n_classes), float32.
        targets (Ints1d): Number of the right class, shape (n_examples,).
        weights (Optional[Floats1d]): Weight of each class's examples, shape (n_classes,); None for
            1.
        RETURNS (Tuple[Floats2d, Floats1d]): Gradient of the sum of the losses with respect to the
            logits, and the (weighted) loss of each example in nats.
        """
        if not is_numpy_array(logits):
            return kernels.softmax_loss(logits, targets, None, weights, self.label_smoothing)
        xp: Any = get_array_module(logits)
        Z: Any = logits
        at = (xp.arange(Z.shape[0]), targets)
        # Target probabilities: ``spread`` for each class, and the rest for the right one.
        spread = self.label_smoothing / max(1, Z.shape[1])
        log_P = Z - Z.max(axis=1, keepdims=True)  # (n_examples, n_classes)
        log_P -= xp.log(xp.exp(log_P).sum(axis=1, keepdims=True))
        losses = -(1 - self.label_smoothing) * log_P[at]  # (n_examples,)
        if spread:
            losses -= spread * log_P.sum(axis=1)
        gradient = xp.exp(log_P)  # (n_examples, n_classes)
        gradient -= xp.float32(spread)
        gradient[at] -= xp.float32(1 - self.label_smoothing)
        if weights is not None:
            of_example: Any = weights[targets]  # (n_examples,)
            losses *= of_example
            gradient *= of_example[:, None]
        return gradient, losses
