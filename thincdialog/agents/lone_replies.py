"""Right replies that are told from nothing but themselves."""

from typing import Optional

from ..errors import NothingToLearnError

# Batches, from the first one on, after which there is no hope.
MOST_BATCHES = 100


class LoneReplies:
    """Sees whether training, as it begins, has anything to tell right replies from. A single
    batch without is no error: an epoch may end in a batch of one.

    epoch_size (Optional[int]): Examples of an epoch; None if they are not known, or many.
    """

    def __init__(self, epoch_size: Optional[int] = None):
        self.epoch_size = epoch_size
        self.n_batches = self.n_examples = 0
        self.is_over = False

    def see(self, n_examples: int, n_candidates: int) -> None:
        """A batch comes.

        n_examples (int): Its size.
        n_candidates (int): Most that any of its right replies is told from, itself counted.
        RAISES (NothingToLearnError): If in a whole epoch, or very many batches from the first
            one on, none had more than one.
        """
        if self.is_over or n_candidates > 1:
            self.is_over = True
            return
        self.n_batches += 1
        self.n_examples += n_examples
        is_epoch = self.epoch_size is not None and self.n_examples >= self.epoch_size
        if is_epoch or self.n_batches >= MOST_BATCHES:
            where = "the first epoch" if is_epoch else f"the first {self.n_batches} batches"
            raise NothingToLearnError(
                f"In {where}, right replies are their only candidates: there is nothing to tell "
                'them from, so nothing is learnt. Set candidates = "fixed" or "inline" in '
                "[agent], or let batches be larger in [world]."
            )
