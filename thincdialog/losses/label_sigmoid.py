"""Cross-entropy of sets of labels."""

from typing import Any, Tuple

from thinc.types import Floats1d, Floats2d
from thinc.util import get_array_module

from ..registry import registry


@registry.losses("thincdialog.LabelSigmoid.v1")
class LabelSigmoid:
    """Compute the sigmoid cross-entropy, summed over the labels: ``loss(logits, targets)`` returns
    the gradient and the losses.

        loss = -sum over l of (T[l] * log P[l] + (1 - T[l]) * log(1 - P[l])),  P = sigmoid(logits)
    """

    def __call__(self, logits: Floats2d, targets: Floats2d) -> Tuple[Floats2d, Floats1d]:
        """Compute loss and gradient.

        logits (Floats2d): Shape (n_examples, n_labels), float32.
        targets (Floats2d): 1.0 for the labels of each example, else 0.0; of the same shape.
        RETURNS (Tuple[Floats2d, Floats1d]): Gradient of the sum of the losses with respect to the
            logits, and the loss of each example in nats.
        """
        xp: Any = get_array_module(logits)
        Z: Any = logits
        small = xp.exp(-xp.abs(Z))  # Never overflows.
        P = xp.where(Z < 0, small, 1) / (1 + small)
        losses = (xp.maximum(Z, 0) - Z * targets + xp.log1p(small)).sum(axis=1)
        return P - targets, losses
