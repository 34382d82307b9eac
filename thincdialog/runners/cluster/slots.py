"""The assignment of a step's microbatches to workers, with a sum that is always bit-identical."""

from typing import Iterator, Tuple


def additions(n: int, first: int = 0) -> Iterator[Tuple[int, int]]:
    """Yield the additions that sum n items, in order: a pair (a, b) adds item b to item a. In the
    end, item ``first`` holds the sum of all items, added up in the same tree as in ``GradientSum``.
    For n = 4, the pairs are

        (0, 1) (2, 3) (0, 2)

    n (int): Number of items.
    first (int): Number of the first item.
    """
    if n > 1:
        half = 1 << ((n - 1).bit_length() - 1)
        yield from additions(half, first)
        yield from additions(n - half, first + half)
        yield (first, first + half)


class Slots:
    """Divide the microbatches of a step into slots, each of which is a subtree of the sum. One
    worker trains on all microbatches of a slot, and hands over one gradient for the slot. So the
    sum does not depend on the assignment of slots to workers.

    n_microbatches (int): Number of microbatches in a step, 1 or more.
    n_workers (int): Number of workers, 1 or more. If there are fewer microbatches, some workers
        have no slot.
    size (int): Number of microbatches in a slot, a power of two.
    n_slots (int): Number of slots in a whole step.
    """

    def __init__(self, n_microbatches: int, n_workers: int):
        self.n_microbatches, self.n_workers = n_microbatches, n_workers
        least = -(-n_microbatches // n_workers)
        self.size = 1 << n_microbatches.bit_length()
        while True:
            self.n_slots = -(-n_microbatches // self.size)
            # Take the largest size with which no worker has more than its share; else 1.
            most = -(-self.n_slots // n_workers) * self.size
            if self.size == 1 or (self.n_slots >= n_workers and most <= least):
                return
            self.size //= 2

    def of(self, microbatch: int) -> int:
        """Return the slot of a microbatch, from 0."""
        return microbatch // self.size

    def worker(self, slot: int) -> int:
        """Return the number of the worker that a slot belongs to, from 0."""
        if self.n_slots < self.n_workers:
            return slot
        return slot * self.n_workers // self.n_slots

    def own(self, worker: int) -> range:
        """Return the numbers of a worker's slots."""
        own = [slot for slot in range(self.n_slots) if self.worker(slot) == worker]
        return range(own[0], own[-1] + 1) if own else range(0)

    def filled(self, n_microbatches: int) -> int:
        """Return the number of slots that a step fills. An epoch's last step may have fewer
        microbatches than the others.

        n_microbatches (int): Number of microbatches in the step.
        """
        return -(-n_microbatches // self.size)
