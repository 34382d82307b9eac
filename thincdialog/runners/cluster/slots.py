"""Which worker learns which microbatches of a step, so that their sum has the same bits."""

from typing import Iterator, Tuple


def additions(n: int, first: int = 0) -> Iterator[Tuple[int, int]]:
    """Pairs (a, b), in order: add number b to number a. In the end number ``first`` holds the
    sum of all, of the same tree as ``GradientSum``'s.

        4: (0, 1) (2, 3) (0, 2)

    n (int): How many there are.
    first (int): The number of the first.
    """
    if n > 1:
        half = 1 << ((n - 1).bit_length() - 1)
        yield from additions(half, first)
        yield from additions(n - half, first + half)
        yield (first, first + half)


class Slots:
    """Microbatches of a step, in slots of as many as a subtree of their sum has. Each slot has
    one worker, who hands over one gradient for it. So which worker learnt what decides on
    nothing.

    n_microbatches (int): Of a step, 1 or more.
    n_workers (int): 1 or more; where there are fewer microbatches, some have no slot.
    size (int): Microbatches in a slot, a power of two.
    n_slots (int): Of a whole step.
    """

    def __init__(self, n_microbatches: int, n_workers: int):
        self.n_microbatches, self.n_workers = n_microbatches, n_workers
        least = -(-n_microbatches // n_workers)
        self.size = 1 << n_microbatches.bit_length()
        while True:
            self.n_slots = -(-n_microbatches // self.size)
            # A size of 1 is as fair as can be.
            most = -(-self.n_slots // n_workers) * self.size
            if self.size == 1 or (self.n_slots >= n_workers and most <= least):
                return
            self.size //= 2

    def of(self, microbatch: int) -> int:
        """The slot of a microbatch, from 0."""
        return microbatch // self.size

    def worker(self, slot: int) -> int:
        """Whose it is, from 0."""
        if self.n_slots < self.n_workers:
            return slot
        return slot * self.n_workers // self.n_slots

    def own(self, worker: int) -> range:
        """The slots of a worker."""
        own = [slot for slot in range(self.n_slots) if self.worker(slot) == worker]
        return range(own[0], own[-1] + 1) if own else range(0)

    def filled(self, n_microbatches: int) -> int:
        """Slots of a step with so many microbatches: the last of an epoch may have fewer."""
        return -(-n_microbatches // self.size)
