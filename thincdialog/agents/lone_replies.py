"""A check that training batches have candidates other than the right reply."""

from typing import Optional

from ..errors import NothingToLearnError

# Number of batches, from the first one, after which training ends.
MOST_BATCHES = 100


class LoneReplies:
    """Check the first batches of training for candidates that a right reply can be ranked against.
    A few batches without such candidates are not an error, because an epoch may end in a batch of
    one example.

    n_examples (Optional[int]): Number of examples in an epoch, if known. With few examples,
        training ends after twice as many batches, which are at least two epochs.
    n_batches (int): Number of batches so far, all without such candidates.
    is_over (bool): Whether a batch had such candidates, so that no more batches need to be checked.
    """

    def __init__(self, n_examples: Optional[int] = None) -> None:
        self.most = MOST_BATCHES if n_examples is None else min(MOST_BATCHES, 2 * n_examples)
        self.n_batches = 0
        self.is_over = False

    def see(self, n_candidates: int) -> None:
        """Check a batch.

        n_candidates (int): Largest number of candidates of an example, including the right reply.
        RAISES (NothingToLearnError): If none of the first batches had two candidates for an
            example.
        """
        if self.is_over or n_candidates > 1:
            self.is_over = True
            return
        self.n_batches += 1
        if self.n_batches >= self.most:
            raise NothingToLearnError(
                f"In the first {self.n_batches} batches, right replies have no other candidates: "
                "there is nothing to rank them against, so nothing is learned. Set candidates = "
                '"fixed" or "inline" in [agent], or use larger batches in [world].'
            )
