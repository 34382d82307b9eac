"""An error for training in which no batch has a candidate except the right reply."""

from ..errors import NothingToLearnError

# Number of batches, from the first one, after which training ends.
MOST_BATCHES = 100


class LoneReplies:
    """Checks the first batches of training for candidates that a right reply can be ranked
    against. A few batches without any are no error: an epoch may end in a batch of one.

    n_batches (int): Batches so far, all without such candidates.
    is_over (bool): Whether a batch had some; then no batch needs to be checked.
    """

    def __init__(self) -> None:
        self.n_batches = 0
        self.is_over = False

    def see(self, n_candidates: int) -> None:
        """Check a batch.

        n_candidates (int): Highest number of candidates of an example, the right reply included.
        RAISES (NothingToLearnError): If none of the first ``MOST_BATCHES`` batches had two.
        """
        if self.is_over or n_candidates > 1:
            self.is_over = True
            return
        self.n_batches += 1
        if self.n_batches >= MOST_BATCHES:
            raise NothingToLearnError(
                f"In the first {self.n_batches} batches, right replies are their only candidates: "
                "there is nothing to rank them against, so nothing is learned. Set candidates = "
                '"fixed" or "inline" in [agent], or let batches be larger in [world].'
            )
