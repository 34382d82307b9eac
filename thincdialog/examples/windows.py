"""Whole batches of single-turn data, as a batcher chooses them."""

import math
import zlib
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import numpy as np

from ..batchers import Batcher, Lengths, OversizeError, missing_rows, plan_window
from ..errors import DataError
from ..messages import Message
from .batch import NO_LIMIT, Batch, gathered
from .draws import window_generator
from .order import Order

# So many more labels, drawn from the whole window, each reply of a batch is ranked against.
SHARE_OF_OTHERS = 0.25
# Batches that are divided up together where nothing is padded.
POOL = 32
# Tells what the rows of a batch take up.
Measure = Callable[[Sequence[Message]], Lengths]


class Windows:
    """Reads windows of rows in the epoch's order, and hands each out in batches.

    A window is as many rows as make ``batcher.buffer`` batches. It is measured and cut
    once, all of it is handed out before the next one is read, and its batches come in
    random order, by (seed, epoch, number of the window). So an example waits for no more
    batches than its window makes. That is ``buffer`` where rows are counted. Under a budget
    of words it is more by the gaps in batches, and by what the last rows read are longer
    than the first ones, which told how many to read; but a window has no more than twice
    the rows that ``buffer`` budgets hold (or twice ``buffer``).

    batcher (Batcher): How many rows go together, and which.
    measure (Measure): Tells what rows take up; asked only if the batcher needs it.
    """

    def __init__(self, batcher: Batcher, measure: Measure):
        self.batcher, self.measure = batcher, measure
        self._size = batcher.sizes.at(0) if batcher.sizes.is_constant else 0
        self._run: Any = None
        # Windows of the epoch, and batches of all epochs, that were handed out whole.
        self._n_windows = self._step = 0
        self._n_handed = 0
        self._close()

    def _close(self) -> None:
        """The window is handed out, or given up."""
        self._step += self._n_handed
        # Batches of this one; more than none before it is opened if it was left in a state.
        self._n_handed = 0
        self._checksum: Optional[int] = None
        self._window = gathered([])
        self._planned: List[np.ndarray] = []

    def has_left(self, run: Any) -> bool:
        """Whether rows that were read in an epoch were not handed out yet."""
        return self._run is run and len(self._planned) > 0

    def next(self, order: Order) -> Batch:
        """The next batch; an empty one at the end of the epoch.

        RAISES (DataError): If a row is larger than a batch may be, and the batcher
            calls this an error.
        """
        if not self.batcher.needs_lengths:
            batch = order.read(self._size or self.batcher.sizes.at(self._step))
            self._step += len(batch.rows) > 0
            return batch
        if self._run is not order.run:
            self._close()
            self._run, self._n_windows = order.run, 0
        if not self._planned:
            self._open(order)
        if not self._planned:
            return self._window
        rows = self._planned[self._n_handed]
        batch = self._window.take(rows)
        batch.choices = self._window.take(np.concatenate((rows, self._others()))).labelled()
        self._n_handed += 1
        if self._n_handed == len(self._planned):
            self._close()
            self._n_windows += 1
        return batch

    def _open(self, order: Order) -> None:
        """Read and plan the next window."""
        self._start = order.state()
        parts: List[Batch] = []
        measured: List[Lengths] = []
        n_rows = n_words = 0
        while True:
            part = order.read(missing_rows(self.batcher, self._step, n_rows, n_words))
            if not len(part.rows):
                break
            lengths = self.measure(part)
            parts.append(part)
            measured.append(lengths)
            n_rows += len(part.rows)
            n_words += int(lengths.totals.sum())
        if parts:
            self._window = gathered(parts)
            counts = np.concatenate([lengths.counts for lengths in measured])
            self._plan(Lengths(counts, measured[0].padded), order)
        checksum = self._checksum
        if checksum is not None and checksum != _sum(self._window, self._planned):
            text = "gives other batches than when the state was saved"
            raise DataError(order.origin, f"{text}: give the same data and batcher to go on")

    def _plan(self, lengths: Lengths, order: Order) -> None:
        limit, _ = self.batcher.window(self._step)
        while True:
            try:
                fitted = self.batcher.fit(lengths, limit)
            except OversizeError as error:
                name = str(self._window.ids()[error.row])
                raise error.of_example(name, order.origin) from None
            rng = window_generator(order.seed, order.epoch, self._n_windows)
            self._planned = [
                pool[batch]
                for pool in self._pools(fitted, limit)
                for batch in plan_window(self.batcher, fitted.take(pool), limit, rng)
            ]
            self._shuffled = rng.permutation(len(fitted.counts))
            # Cells of labels that are padded must stay within the budget.
            if self.batcher.unit == "words" and any(lengths.padded):
                self._shuffled = self._shuffled[:0]
            # More batches than foreseen may reach steps where less is allowed.
            steps = range(self._step, self._step + len(self._planned))
            least = min(map(self.batcher.sizes.at, steps))
            if least >= limit:
                break
            limit = least
        if fitted is not lengths:
            is_short = (fitted.counts != lengths.counts).any(axis=1, keepdims=True)
            self._window.max_tokens = np.where(is_short, fitted.counts, NO_LIMIT)

    def _pools(self, lengths: Lengths, limit: int) -> List[np.ndarray]:
        """The rows that are divided into batches together: all, or, for an agent that pads
        nothing, those of some batches. Batches of like length hardly save it anything, and it
        learns more from mixed ones."""
        n_rows, in_rows = len(lengths.counts), self.batcher.unit == "rows"
        if any(lengths.padded):
            return [np.arange(n_rows)]
        n_batches = (n_rows if in_rows else int(lengths.totals.sum())) / limit
        size = math.ceil(n_rows / max(1, round(n_batches / POOL)))
        if in_rows:
            size = math.ceil(size / limit) * limit
        return [np.arange(n_rows)[start : start + size] for start in range(0, n_rows, size)]

    def _others(self) -> np.ndarray:
        """Rows of the window, of any length. Labels of like length alone do not teach a ranker
        which length is right."""
        start = sum(map(len, self._planned[: self._n_handed]))
        n = math.ceil(SHARE_OF_OTHERS * len(self._planned[self._n_handed]))
        return self._shuffled[start : start + n]

    def state(self, order: Order) -> Dict[str, Any]:
        """The place in the epoch, and how much of the window that begins there was
        handed out, as JSON values."""
        shown = self._start if self.has_left(order.run) else order.state()
        place = {"step": self._step, "windows": self._n_windows, "handed": self._n_handed}
        checksum = _sum(self._window, self._planned) if self._planned else self._checksum
        if self._run is not order.run:
            place = {"step": self._step + self._n_handed, "windows": 0, "handed": 0}
            checksum = None
        return {"shown": shown, "batches": {**place, "checksum": checksum}}

    def restore(self, state: Mapping[str, Any], run: Any) -> None:
        """Go on where a state was taken; the window is read and cut again when the next
        batch is asked for.

        state (Mapping[str, Any]): Under "batches" in ``state``.
        run (Any): The epoch that the order was brought to.
        """
        self._close()
        self._run, self._step, self._n_windows = run, state["step"], state["windows"]
        self._n_handed, self._checksum = state["handed"], state["checksum"]


def _sum(window: Batch, planned: Sequence[np.ndarray]) -> int:
    """Tells whether a window is the same again, and cut alike."""
    ids = "\n".join(map(str, window.ids()))
    rows = [row for batch in planned for row in (-1, *batch.tolist())]
    return zlib.crc32(
        f"{ids}\n{rows}\n{window.store.sample_checksum}".encode("utf-8", "surrogatepass")
    )
