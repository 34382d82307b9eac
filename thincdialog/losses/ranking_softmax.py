"""Cross-entropy of the right candidate among those of the batch."""

from typing import Any, Callable, Optional, Tuple

from thinc.types import Array2d, Floats1d, Floats2d, Ints1d
from thinc.util import get_array_module

from ..registry import registry


class RankingSoftmax:
    """See ``configure_ranking_softmax``."""

    def __call__(
        self, scores: Floats2d, targets: Ints1d, allowed: Optional[Array2d] = None
    ) -> Tuple[Floats2d, Floats1d]:
        """Loss and gradient.

        scores (Floats2d): Shape (n_examples, n_candidates), float32.
        targets (Ints1d): Number of the right candidate, shape (n_examples,).
        allowed (Optional[Array2d]): Bools of the shape of scores: the candidates that an
            example is told from (leave out those that are right for it too). The right
            one counts in any case; None for all.
        RETURNS (Tuple[Floats2d, Floats1d]): Gradient of the sum of the losses with
            respect to the scores, and the loss of each example in nats.
        """
        xp: Any = get_array_module(scores)
        Z: Any = scores
        at = (xp.arange(Z.shape[0]), targets)
        if allowed is not None:
            others: Any = allowed.copy()
            others[at] = True
            Z = xp.where(others, Z, xp.float32(-xp.inf))
        shifted = Z - Z.max(axis=1, keepdims=True)
        right = shifted[at]
        gradient = xp.exp(shifted)
        total = gradient.sum(axis=1, keepdims=True)
        gradient /= total
        gradient[at] -= 1
        return gradient, xp.log(total[:, 0]) - right


@registry.losses("thincdialog.RankingSoftmax.v1")
def configure_ranking_softmax() -> Callable:
    """Softmax cross-entropy of the right candidate against the allowed others.

        loss = -s[right] + log sum_c exp(s[c])

    RETURNS (Callable): ``loss(scores, targets, allowed=None) -> (gradient, losses)``.
    SOURCE: in-batch negatives as in Henderson et al. 2017, https://arxiv.org/abs/1705.00652
    """
    return RankingSoftmax()
