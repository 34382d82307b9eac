"""Right replies that are told from nothing but themselves."""

from ..errors import NothingToLearnError

# Batches, from the first one on, after which there is no hope.
MOST_BATCHES = 100


class LoneReplies:
    """Sees whether training, as it begins, has anything to tell right replies from. Some batches
    without are no error: an epoch may end in a batch of one.

    n_batches (int): Seen so far.
    is_over (bool): Whether there was something.
    """

    def __init__(self) -> None:
        self.n_batches = 0
        self.is_over = False

    def see(self, n_candidates: int) -> None:
        """A batch comes.

        n_candidates (int): Most that any of its right replies is told from, itself counted.
        RAISES (NothingToLearnError): If none of very many batches, from the first one on, had
            more than one.
        """
        if self.is_over or n_candidates > 1:
            self.is_over = True
            return
        self.n_batches += 1
        if self.n_batches >= MOST_BATCHES:
            raise self.error("the first")

    def error(self, which: str) -> NothingToLearnError:
        """The error for all batches that were seen.

        which (str): Of training: "the first", or "all".
        """
        return NothingToLearnError(
            f"In {which} {self.n_batches} batches, right replies are their only candidates: "
            "there is nothing to tell them from, so nothing is learnt. Set candidates = "
            '"fixed" or "inline" in [agent], or let batches be larger in [world].'
        )
