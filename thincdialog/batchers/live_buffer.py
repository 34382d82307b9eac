"""A buffer of waiting conversations that chooses which of them form the next batch."""

from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np

from .batcher import Batcher, missing_rows, plan_order
from .cuts import OVERHEAD
from .lengths import Lengths

# Number of batches after which a waiting row is due, as a multiple of the buffer.
MAX_WAIT = 5
# Number of batches of similar lengths that are compared with each other.
STRATUM = 32
# Seed word of the draws, which keeps them different from those in examples/draws.py.
ROUNDS = 7


class LiveBuffer:
    """Choose batches among waiting rows, while rows are added and handed out.

    Batches are chosen in rounds. Each round plans batches of all waiting rows, and hands out the
    better half of them in random order: those with the least padding among batches of similar
    lengths. The rows of the other batches wait for rows that fit them better. A row that has waited
    for ``MAX_WAIT`` buffers when a round begins is due: its batch is handed out in this round,
    however much padding it has.

    So a row waits for less than seven buffers. It is due in the first round that begins 5 buffers
    or more after the row was added, and this round begins before 6 buffers are over, because no
    round is longer than the buffer. This is true if one round can hand out all batches that are
    due: for batchers that count rows, if the caller adds no more rows than ``missing()`` returns.
    With a word budget, more batches may be due at once; the oldest are handed out first. A row then
    waits for less than seven buffers, plus one batch for each row that was in the buffer when it
    was added, because only rows of the same age and older rows are handed out before it.

    With fewer than ``2 * STRATUM`` batches in the buffer, there are not enough batches of similar
    lengths to compare. Batches of long rows, which have more padding, are then chosen a little
    later.

    Planning sorts the rows in each round, which takes O(log n) for each row.

    batcher (Batcher): Plans the batches.
    seed (Sequence[int]): Seed of the order of batches; integers of 0 or more.
    """

    def __init__(self, batcher: Batcher, seed: Sequence[int]):
        self.batcher = batcher
        self.seed = list(seed)
        self.step = 0  # Number of batches handed out.
        self._round = 0
        self._clear()

    def _clear(self) -> None:
        self._n_rows = 0
        self._n_words = 0
        self._waiting: List[_Rows] = []
        # Batches of this round; the last one is handed out next.
        self._chosen: List[_Rows] = []

    def __len__(self) -> int:
        """Return the number of waiting rows, including rows that are chosen in this round."""
        return self._n_rows

    def missing(self) -> int:
        """Estimate the number of rows for which the buffer has room."""
        return missing_rows(self.batcher, self.step, self._n_rows, self._n_words)

    def add(self, slots: Sequence[int], lengths: Lengths) -> None:
        """Add rows, which wait from now on.

        slots (Sequence[int]): Numbers by which the caller identifies the rows.
        lengths (Lengths): Lengths of the rows.
        """
        if not len(slots):
            return
        since = np.full(len(slots), self.step)
        self._waiting.append(_Rows(np.array(slots, dtype=np.int64), lengths, since))
        self._count(self._waiting[-1])

    def next_batch(self, more_to_come: bool) -> List[int]:
        """Remove the rows of the next batch from the buffer and return them.

        more_to_come (bool): Whether rows may still be added. If not, all waiting rows are chosen.
        RAISES (IndexError): If no row waits.
        """
        if not self._chosen:
            if not self._n_rows:
                raise IndexError("no row is waiting")
            self._choose(more_to_come)
        batch = self._chosen.pop()
        self.step += 1
        self._count(batch, -1)
        slots: List[int] = batch.slots.tolist()
        return slots

    def _count(self, rows: "_Rows", sign: int = 1) -> None:
        self._n_rows += sign * len(rows.slots)
        self._n_words += sign * int(rows.lengths.totals.sum())

    def _choose(self, more_to_come: bool) -> None:
        """Begin a round: plan batches of all waiting rows, and choose those to hand out."""
        slots, lengths, since = zip(*self._waiting)
        counts = np.concatenate([each.counts for each in lengths])
        joined = Lengths(counts, lengths[0].padded)
        rows = _Rows(np.concatenate(slots), joined, np.concatenate(since))
        if not self.batcher.needs_lengths:  # Rows keep their order.
            size = self.batcher.sizes.at(self.step)
            rest = rows.take(slice(size, None))
            self._chosen = [rows.take(slice(size))]
            self._waiting = [rest] if len(rest.slots) else []
            return
        limit, n_batches = self.batcher.window(self.step)
        rng = np.random.Generator(
            np.random.PCG64(np.random.SeedSequence([ROUNDS, *self.seed, self._round]))
        )
        self._round += 1
        order, edges = plan_order(self.batcher, rows.lengths, limit, rng)
        planned, starts = rows.take(order), np.array(edges[:-1])
        is_chosen = np.ones(len(starts), dtype=bool)
        oldest = np.minimum.reduceat(planned.since, starts)
        is_due = oldest <= self.step - MAX_WAIT * n_batches
        if more_to_come and len(starts) > 1:
            is_chosen = is_due | self._is_good(planned.lengths, starts, limit)
        chosen = rng.permutation(np.flatnonzero(is_chosen))
        if len(chosen) > n_batches:
            # The limit is valid for n_batches only. Keep the batches that are due first, the oldest
            # of these before the others.
            age = np.where(is_due, oldest, self.step + 1)[chosen]
            chosen = chosen[np.sort(np.argsort(age, kind="stable")[:n_batches])]
            is_chosen[:] = False
            is_chosen[chosen] = True
        waits = np.repeat(~is_chosen, np.diff(edges))
        self._waiting = [rows.take(np.sort(order[waits]))] if waits.any() else []
        self._chosen = [planned.take(slice(edges[n], edges[n + 1])) for n in chosen.tolist()]

    def _is_good(self, lengths: Lengths, starts: np.ndarray, limit: int) -> np.ndarray:
        """Return whether each batch is in the better half of the batches of similar lengths."""
        sizes = np.diff(starts, append=len(lengths.counts))
        sums = np.add.reduceat(lengths.counts, starts, axis=0)
        words = np.maximum(sums.sum(axis=1), 1)
        widest = np.maximum.reduceat(lengths.counts, starts, axis=0)
        costs = np.where(lengths.padded, widest * sizes[:, None], sums).sum(axis=1) / words
        if self.batcher.unit == "words":
            costs += OVERHEAD * limit / words
        by_length = np.argsort(words / sizes, kind="stable")
        if self.batcher.unit == "rows":
            # A batch that is not full waits for more rows.
            by_length = by_length[(sizes >= np.median(sizes))[by_length]]
        is_good = np.zeros(len(starts), dtype=bool)
        # Compare only batches of similar lengths. Otherwise, long rows, which have more padding,
        # would all be last.
        for part in np.array_split(by_length, max(1, len(by_length) // STRATUM)):
            is_good[part[np.argsort(costs[part], kind="stable")[: (len(part) + 1) // 2]]] = True
        return is_good

    def state(self) -> Dict[str, Any]:
        """Return the state as JSON values, for ``restore()``."""
        return {
            "step": self.step,
            "round": self._round,
            "waiting": [rows.state() for rows in self._waiting],
            "chosen": [rows.state() for rows in self._chosen],
        }

    def restore(self, state: Dict[str, Any]) -> None:
        """Continue from a state that ``state()`` returned."""
        self._clear()
        self.step, self._round = state["step"], state["round"]
        self._waiting = list(map(_Rows.of, state["waiting"]))
        self._chosen = list(map(_Rows.of, state["chosen"]))
        for rows in (*self._waiting, *self._chosen):
            self._count(rows)


class _Rows(NamedTuple):
    """Hold waiting rows: the caller's numbers, lengths, and the step at which each was added."""

    slots: np.ndarray
    lengths: Lengths
    since: np.ndarray

    @classmethod
    def of(cls, state: Sequence[Any]) -> "_Rows":
        slots, counts, padded, since = state
        lengths = Lengths(np.array(counts, dtype=np.int64), tuple(padded))
        return cls(np.array(slots, dtype=np.int64), lengths, np.array(since))

    def state(self) -> List[Any]:
        counts, padded = self.lengths
        return [self.slots.tolist(), counts.tolist(), list(padded), self.since.tolist()]

    def take(self, rows: Any) -> "_Rows":
        return _Rows(self.slots[rows], self.lengths.take(rows), self.since[rows])
