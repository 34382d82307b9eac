"""Losses of candidates' scores: the cross-entropy of the right candidate, or a hinge with a margin
between the right candidate and the others."""

from typing import Any, Literal, Optional, Tuple

from thinc.types import Array2d, Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module, is_numpy_array

from ..ops.gpu import kernels
from ..registry import registry


@registry.losses("thincdialog.RankingSoftmax.v1")
class RankingSoftmax:
    """Compute the softmax cross-entropy of the right candidate against the allowed others:
    ``loss(scores, targets, allowed=None)`` returns the gradient and the losses.

        loss = -s[right] + log sum_c exp(s[c])

    SOURCE: in-batch negatives as in Henderson et al. 2017, https://arxiv.org/abs/1705.00652
    """

    def __call__(
        self, scores: Floats2d, targets: Ints1d, allowed: Optional[Array2d] = None
    ) -> Tuple[Floats2d, Floats1d]:
        """Compute loss and gradient.

        scores (Floats2d): Shape (n_examples, n_candidates), float32.
        targets (Ints1d): Number of the right candidate, shape (n_examples,).
        allowed (Optional[Array2d]): Mask in the shape of scores, bool: the candidates that an
            example is ranked against (exclude others that are right for it, too). The right
            candidate is always included; None for all candidates.
        RETURNS (Tuple[Floats2d, Floats1d]): Gradient of the sum of the losses with respect to the
            scores, and the loss of each example in nats.
        """
        if not is_numpy_array(scores):
            return kernels.softmax_loss(scores, targets, allowed)
        xp: Any = get_array_module(scores)
        Z: Any = scores
        at = (xp.arange(Z.shape[0]), targets)
        if allowed is not None:
            others: Any = allowed.copy()
            others[at] = True
            Z = xp.where(others, Z, xp.float32(-xp.inf))
        shifted = Z - Z.max(axis=1, keepdims=True)  # (n_examples, n_candidates)
        right = shifted[at]  # (n_examples,)
        gradient = xp.exp(shifted)  # (n_examples, n_candidates)
        total = gradient.sum(axis=1, keepdims=True)  # (n_examples, 1)
        gradient /= total
        gradient[at] -= 1
        return gradient, xp.log(total[:, 0]) - right


@registry.losses("thincdialog.RankingHinge.v1")
class RankingHinge:
    """Compute a hinge loss over candidates, which penalises each wrong candidate whose score is
    within a margin of the right one. ``loss(scores, targets, allowed=None)`` returns the gradient
    and the losses.

        loss = mean over c of max(0, margin - s[right] + s[c])

    margin (float): Distance to reach, in units of the score, above 0.
    negatives (str): Average over all wrong candidates ("mean"), or use only the worst ("hardest").
    RAISES (ValueError): If margin is not above 0.
    """

    def __init__(self, margin: float = 0.2, negatives: Literal["mean", "hardest"] = "mean"):
        if margin <= 0:
            raise ValueError(f"margin = {margin}, but it must be above 0")
        self.margin = margin
        self.negatives = negatives

    def __call__(
        self, scores: Floats2d, targets: Ints1d, allowed: Optional[Array2d] = None
    ) -> Tuple[Floats2d, Floats1d]:
        """Compute loss and gradient from the same arguments as ``RankingSoftmax``; the loss is in
        units of the score."""
        xp: Any = get_array_module(scores)
        Z: Any = scores
        rows = xp.arange(Z.shape[0])
        others: Any = xp.ones(Z.shape, dtype=bool) if allowed is None else allowed.copy()
        others[rows, targets] = False
        # (n_examples, n_candidates)
        excess = Z - Z[rows, targets][:, None] + xp.float32(self.margin)
        excess = xp.where(others, xp.maximum(excess, 0), xp.float32(0))
        if self.negatives == "hardest" and Z.shape[1]:
            hardest = excess.argmax(axis=1)  # (n_examples,)
            losses = excess[rows, hardest]
            gradient = xp.zeros_like(excess)  # (n_examples, n_candidates)
            gradient[rows, hardest] = losses > 0
        else:
            n_others = xp.maximum(others.sum(axis=1), 1).astype("f")
            losses = excess.sum(axis=1) / n_others
            gradient = (excess > 0) / n_others[:, None]
        gradient[rows, targets] -= gradient.sum(axis=1)
        return gradient, losses
