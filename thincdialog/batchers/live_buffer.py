"""Conversations that wait for their turn, and which of them go together next."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from .batcher import Batcher, missing_rows, plan_window
from .cuts import OVERHEAD
from .lengths import Lengths

# Batches after which a row goes next, as a multiple of the buffer.
MAX_WAIT = 5
# Batches of like length that are compared.
STRATUM = 32
# Draws must not repeat those of the order of the data (teachers/order.py).
ROUNDS = 7


class LiveBuffer:
    """Rows come and go; a batch is chosen among those that wait.

    Choosing goes in rounds: all waiting rows are planned, and the better half of the
    batches (those with the least padding among batches of like length) is handed out, in
    random order; the rows of the others wait for better company among those that come
    meanwhile. A row that has waited for ``MAX_WAIT`` buffers is handed out in the next
    round whatever its company. So no row waits longer than that and two rounds, each at
    most the batches that the buffer holds: seven buffers of rows.

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
        since = np.full(len(slots), self.step)
        self._waiting.append(_Rows(np.asarray(slots), lengths, since))
        self._n_rows += len(slots)
        self._n_words += int(lengths.totals.sum())

    def next_batch(self, more_to_come: bool) -> List[int]:
        """The rows that go next; they do not wait any more.

        more_to_come (bool): Whether rows may still be added; without, nothing is held
            back for better company.
        RAISES (IndexError): If no row waits.
        """
        if not self._chosen:
            self._choose(more_to_come)
        batch, n_words = self._chosen.pop()
        self.step += 1
        self._n_rows -= len(batch)
        self._n_words -= n_words
        return batch

    def _choose(self, more_to_come: bool) -> None:
        """Begin a round."""
        rows = _Rows(
            np.concatenate([rows.slots for rows in self._waiting]),
            Lengths(
                np.concatenate([rows.lengths.counts for rows in self._waiting]),
                self._waiting[0].lengths.padded,
            ),
            np.concatenate([rows.since for rows in self._waiting]),
        )
        limit, n_batches = self.batcher.window(self.step)
        rng = np.random.Generator(
            np.random.PCG64(np.random.SeedSequence([ROUNDS, *self.seed, self._round]))
        )
        self._round += 1
        batches = plan_window(self.batcher, rows.lengths, limit, rng)
        n_chosen = len(batches)
        if more_to_come:
            latest = self.step - MAX_WAIT * n_batches
            batches, n_chosen = self._best_first(batches, rows, limit, latest)
        totals = rows.lengths.totals
        self._chosen = [
            (rows.slots[batch].tolist(), int(totals[batch].sum())) for batch in batches[:n_chosen]
        ]
        rng.shuffle(self._chosen)
        left = np.concatenate([np.zeros(0, dtype=np.int64), *batches[n_chosen:]])
        self._waiting = [rows.take(np.sort(left))] if len(left) else []

    def _best_first(
        self, batches: List[np.ndarray], rows: "_Rows", limit: int, latest: int
    ) -> Tuple[List[np.ndarray], int]:
        """The batches, best first, and how many of them go in this round."""
        sizes = np.array([len(batch) for batch in batches])
        starts = sizes.cumsum() - sizes
        order = np.concatenate(batches)
        counts = rows.lengths.counts[order]
        widest = np.maximum.reduceat(counts, starts, axis=0)
        sums = np.add.reduceat(counts, starts, axis=0)
        cells = np.where(rows.lengths.padded, widest * sizes[:, None], sums).sum(axis=1)
        words = np.maximum(sums.sum(axis=1), 1)
        if self.batcher.unit == "rows":
            is_full = sizes >= limit
            costs = np.where(is_full, cells / words, np.inf)
        else:
            is_full = np.ones(len(batches), dtype=bool)
            costs = (cells + OVERHEAD * limit) / words
        is_due = np.minimum.reduceat(rows.since[order], starts) <= latest
        # Among those of like length: else long rows, which pad more, would all go last.
        by_length = np.argsort(words / sizes, kind="stable")
        by_length = by_length[is_full[by_length]]
        is_best = np.zeros(len(batches), dtype=bool)
        for part in np.array_split(by_length, max(1, len(by_length) // STRATUM)):
            is_best[part[np.argsort(costs[part], kind="stable")[: (len(part) + 1) // 2]]] = True
        is_chosen = is_due | is_best
        best = np.lexsort((costs, ~is_chosen))
        n_chosen = max(1, int(is_chosen.sum()))
        return [batches[number] for number in best.tolist()], n_chosen

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
