"""Assigns the microbatches of a step to workers, so that their sum is always bit-identical."""

from typing import Iterator, Tuple


def additions(n: int, first: int = 0) -> Iterator[Tuple[int, int]]:
    """Return pairs (a, b), in order: add number b to number a. In the end number ``first`` holds
    the sum of all numbers, added in the same tree as by ``GradientSum``.

        4: (0, 1) (2, 3) (0, 2)

    n (int): How many numbers there are.
    first (int): The first number.
    """
    if n > 1:
        half = 1 << ((n - 1).bit_length() - 1)
        yield from additions(half, first)
        yield from additions(n - half, first + half)
        yield (first, first + half)


class Slots:
    """Divides the microbatches of a step into slots, each a subtree of the sum. One worker trains
    on all microbatches of a slot, and hands over one gradient for it. So the sum does not depend
    on the assignment of slots to workers.

    n_microbatches (int): Microbatches in a step, 1 or more.
    n_workers (int): Workers, 1 or more; if there are fewer microbatches, some have no slot.
    size (int): Microbatches in a slot, a power of two.
    n_slots (int): Slots in a whole step.
    """

    def __init__(self, n_microbatches: int, n_workers: int):
        self.n_microbatches, self.n_workers = n_microbatches, n_workers
        least = -(-n_microbatches // n_workers)
        self.size = 1 << n_microbatches.bit_length()
        while True:
            self.n_slots = -(-n_microbatches // self.size)
            # A size of 1 is the fairest.
            most = -(-self.n_slots // n_workers) * self.size
            if self.size == 1 or (self.n_slots >= n_workers and most <= least):
                return
            self.size //= 2

    def of(self, microbatch: int) -> int:
        """Return the slot of a microbatch, from 0."""
        return microbatch // self.size

    def worker(self, slot: int) -> int:
        """Return the worker that a slot belongs to, from 0."""
        if self.n_slots < self.n_workers:
            return slot
        return slot * self.n_workers // self.n_slots

    def own(self, worker: int) -> range:
        """Return the slots of a worker."""
        own = [slot for slot in range(self.n_slots) if self.worker(slot) == worker]
        return range(own[0], own[-1] + 1) if own else range(0)

    def filled(self, n_microbatches: int) -> int:
        """Return how many slots the microbatches fill; the last step of an epoch may have few."""
        return -(-n_microbatches // self.size)
