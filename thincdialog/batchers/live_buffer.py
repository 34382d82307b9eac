"""Conversations that wait for their turn, and which of them go together next."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from .batcher import Batcher, missing_rows, plan_order
from .cuts import OVERHEAD
from .lengths import Lengths

# Batches after which a row goes next, as a multiple of the buffer.
MAX_WAIT = 5
# Batches of like length that are compared.
STRATUM = 32
# Draws must not repeat those of the order of the data (examples/draws.py).
ROUNDS = 7


class LiveBuffer:
    """Rows come and go; a batch is chosen among those that wait.

    Choosing goes in rounds: all waiting rows are planned, and the better half of the
    batches (those with the least padding among batches of like length) is handed out, in
    random order; the rows of the others wait for better company. A row that has waited for
    ``MAX_WAIT`` buffers when a round begins goes in this round whatever its company.

    So a row waits for less than seven buffers: it is due in the first round that begins
    5 buffers or more after it came, which begins before 6 buffers are over, since no
    round is longer than the buffer. This holds where no more is due than a round takes: for
    batchers that fill their batches with rows, and a caller that adds no more than are
    ``missing``. With a word budget more batches may be due at once; these go oldest first.
    A row then waits for less than seven buffers and as many batches as there were rows in
    the buffer when it came: no row due is passed over but for older ones or its equals.

    With fewer than ``2 * STRATUM`` batches in the buffer there are not enough of like
    length to compare; then batches of long rows, which pad more, come a little later.

    Planning costs a sort in each round: O(log n) for each row.

    batcher (Batcher): The policy.
    seed (Sequence[int]): Seeds the order of batches; numbers of 0 or more.
    """

    def __init__(self, batcher: Batcher, seed: Sequence[int]):
        self.batcher = batcher
        self.seed = list(seed)
        self.step = 0  # Batches handed out.
        self._round = 0
        self._forget()

    def _forget(self) -> None:
        self._n_rows = 0
        self._n_words = 0
        self._waiting: List[_Rows] = []
        # Batches of this round with their words; the last one is next.
        self._chosen: List[Tuple[List[int], int]] = []

    def __len__(self) -> int:
        """Rows that wait, those chosen in this round among them."""
        return self._n_rows

    def missing(self) -> int:
        """How many more rows there is room for, as far as can be told."""
        return missing_rows(self.batcher, self.step, self._n_rows, self._n_words)

    def add(self, slots: Sequence[int], lengths: Lengths) -> None:
        """These rows wait from now on.

        slots (Sequence[int]): The caller's numbers for them.
        lengths (Lengths): Of each.
        """
        if not len(slots):
            return
        since = np.full(len(slots), self.step)
        self._waiting.append(_Rows(np.array(slots, dtype=np.int64), lengths, since))
        self._n_rows += len(slots)
        self._n_words += int(lengths.totals.sum())

    def next_batch(self, more_to_come: bool) -> List[int]:
        """The rows that go next; they do not wait any more.

        more_to_come (bool): Whether rows may still be added; without, none is held back.
        RAISES (IndexError): If no row waits.
        """
        if not self._chosen:
            if not self._n_rows:
                raise IndexError("no row waits")
            self._choose(more_to_come)
        batch, n_words = self._chosen.pop()
        self.step += 1
        self._n_rows -= len(batch)
        self._n_words -= n_words
        return batch

    def _choose(self, more_to_come: bool) -> None:
        """Begin a round."""
        slots, lengths, since = zip(*self._waiting)
        counts = np.concatenate([each.counts for each in lengths])
        joined = Lengths(counts, lengths[0].padded)
        rows = _Rows(np.concatenate(slots), joined, np.concatenate(since))
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
            # A schedule's limit holds no longer. Who is due stays, by age.
            age = np.where(is_due, oldest, self.step + 1)[chosen]
            chosen = chosen[np.sort(np.argsort(age, kind="stable")[:n_batches])]
            is_chosen[:] = False
            is_chosen[chosen] = True
        waits = np.repeat(~is_chosen, np.diff(edges))
        self._waiting = [rows.take(np.sort(order[waits]))] if waits.any() else []
        words = np.add.reduceat(planned.lengths.totals, starts).tolist()
        numbers = planned.slots.tolist()
        self._chosen = [
            (numbers[edges[batch] : edges[batch + 1]], words[batch]) for batch in chosen.tolist()
        ]

    def _is_good(self, lengths: Lengths, starts: np.ndarray, limit: int) -> np.ndarray:
        """Whether each batch is of the better half of those of like length."""
        sizes = np.diff(starts, append=len(lengths.counts))
        sums = np.add.reduceat(lengths.counts, starts, axis=0)
        words = np.maximum(sums.sum(axis=1), 1)
        widest = np.maximum.reduceat(lengths.counts, starts, axis=0)
        costs = np.where(lengths.padded, widest * sizes[:, None], sums).sum(axis=1) / words
        if self.batcher.unit == "words":
            costs += OVERHEAD * limit / words
        by_length = np.argsort(words / sizes, kind="stable")
        if self.batcher.unit == "rows":
            # The rest of the rows waits until it makes a batch.
            by_length = by_length[(sizes >= np.median(sizes))[by_length]]
        is_good = np.zeros(len(starts), dtype=bool)
        # Among those of like length: else long rows, which pad more, would all go last.
        for part in np.array_split(by_length, max(1, len(by_length) // STRATUM)):
            is_good[part[np.argsort(costs[part], kind="stable")[: (len(part) + 1) // 2]]] = True
        return is_good

    def state(self) -> Dict[str, Any]:
        """All of it as JSON values, for ``restore``."""
        return {
            "step": self.step,
            "round": self._round,
            "waiting": [
                [rows.slots.tolist(), rows.lengths.counts.tolist(), rows.since.tolist()]
                for rows in self._waiting
            ],
            "padded": list(self._waiting[0].lengths.padded) if self._waiting else [],
            "chosen": [[batch, n_words] for batch, n_words in self._chosen],
        }

    def restore(self, state: Dict[str, Any]) -> None:
        """Go on where ``state`` was taken."""
        self._forget()
        self.step, self._round = state["step"], state["round"]
        padded = tuple(state["padded"])
        for slots, counts, since in state["waiting"]:
            lengths = Lengths(np.array(counts, dtype=np.int64), padded)
            self._waiting.append(_Rows(np.array(slots), lengths, np.array(since)))
            self._n_rows += len(slots)
            self._n_words += int(lengths.totals.sum())
        self._chosen = [(list(batch), n_words) for batch, n_words in state["chosen"]]
        self._n_rows += sum(len(batch) for batch, _ in self._chosen)
        self._n_words += sum(n_words for _, n_words in self._chosen)


class _Rows(NamedTuple):
    """Rows that wait: the caller's numbers, lengths, and the step that each waits since."""

    slots: np.ndarray
    lengths: Lengths
    since: np.ndarray

    def take(self, rows: np.ndarray) -> "_Rows":
        return _Rows(self.slots[rows], self.lengths.take(rows), self.since[rows])
