"""Whole batches of single-turn data, as a batcher chooses them."""

import zlib
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np

from ..batchers import Batcher, Lengths, OversizeError, missing_rows, plan_window
from ..errors import DataError
from .batch import NO_LIMIT, Batch, gathered
from .draws import window_generator
from .order import Order

# Tells what the rows of a batch take up.
Measure = Callable[[Batch], Lengths]


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
        self.batcher = batcher
        self.measure = measure
        self.step = 0
        self._size = batcher.sizes.at(0) if batcher.sizes.is_constant else 0
        self._begin(None)

    def _begin(self, run: Any) -> None:
        """No window is read yet of an epoch."""
        self._run = run
        self._n_windows = 0
        self._n_skipped = 0
        self._checksum: Optional[int] = None
        self._close()

    def _close(self) -> None:
        self._window = gathered([])
        self._planned: List[np.ndarray] = []
        self._n_handed = 0

    def has_left(self, run: Any) -> bool:
        """Whether rows that were read in an epoch were not handed out yet."""
        return self._run is run and self._n_handed < len(self._planned)

    def next(self, order: Order) -> Batch:
        """The next batch; an empty one at the end of the epoch.

        RAISES (DataError): If a row is larger than a batch may be, and the batcher
            calls this an error.
        """
        if not self.batcher.needs_lengths:
            batch = order.read(self._size or self.batcher.sizes.at(self.step))
        else:
            if self._run is not order.run:
                self.step += self._n_skipped
                self._begin(order.run)
            if self._n_handed == len(self._planned):
                self._open(order)
            batch = self._from_window()
        self.step += len(batch.rows) > 0
        return batch

    def _from_window(self) -> Batch:
        if not self._planned:
            return gathered([])
        self._n_handed += 1
        return self._window.take(self._planned[self._n_handed - 1])

    def _open(self, order: Order) -> None:
        """Read and plan the next window."""
        self._close()
        self._start = order.state()
        self._first_step = self.step
        parts: List[Batch] = []
        measured: List[Lengths] = []
        n_rows = n_words = 0
        while True:
            n_missing = missing_rows(self.batcher, self.step, n_rows, n_words)
            part = order.read(n_missing)
            if not len(part):
                break
            lengths = self.measure(part)
            parts.append(part)
            measured.append(lengths)
            n_rows += len(part)
            n_words += int(lengths.totals.sum())
        if parts:
            self._window = gathered(parts)
            counts = np.concatenate([lengths.counts for lengths in measured])
            self._plan(Lengths(counts, measured[0].padded), order)
            self._n_windows += 1
        if self._checksum not in (None, self._sum()):
            text = "gives other batches than when the state was saved"
            raise DataError(order.origin, f"{text}: give the same data and batcher to go on")
        # Behind a restored place.
        self._n_handed = self._n_skipped
        self.step += self._n_skipped
        self._n_skipped, self._checksum = 0, None

    def _sum(self) -> int:
        """Tells whether a window is the same again, and cut alike."""
        ids = "\n".join(map(str, self._window.ids()))
        rows = [row for batch in self._planned for row in (-1, *batch.tolist())]
        return zlib.crc32(f"{ids}\n{rows}".encode("utf-8", "surrogatepass"))

    def _plan(self, lengths: Lengths, order: Order) -> None:
        limit, _ = self.batcher.window(self.step)
        while True:
            fitted = self._fit(lengths, limit, order.origin)
            rng = window_generator(order.seed, order.epoch, self._n_windows)
            self._planned = plan_window(self.batcher, fitted, limit, rng)
            # More batches than foreseen may reach steps where less is allowed.
            least = min(self.batcher.sizes.at(self.step + k) for k in range(len(self._planned)))
            if least >= limit:
                break
            limit = least
        if fitted is not lengths:
            is_short = (fitted.counts != lengths.counts).any(axis=1, keepdims=True)
            self._window.max_tokens = np.where(is_short, fitted.counts, NO_LIMIT)

    def _fit(self, lengths: Lengths, limit: int, origin: str) -> Lengths:
        try:
            return self.batcher.fit(lengths, limit)
        except OversizeError as error:
            raise error.of_example(str(self._window.ids()[error.row]), origin) from None

    def state(self, order: Order) -> Dict[str, Any]:
        """The place in the epoch, and how much of the window that begins there was
        handed out, as JSON values."""
        run = order.run
        if self._run is not run:
            step, n_windows, n_handed, checksum = self.step + self._n_skipped, 0, 0, None
        elif self.has_left(run):
            step, n_windows = self._first_step, self._n_windows - 1
            n_handed, checksum = self._n_handed, self._sum()
        else:
            step, n_windows = self.step, self._n_windows
            n_handed, checksum = self._n_skipped, self._checksum
        window = {"step": step, "windows": n_windows, "handed": n_handed, "checksum": checksum}
        shown = self._start if self.has_left(run) else order.state()
        return {"shown": shown, "batches": window}

    def restore(self, state: Mapping[str, Any], run: Any) -> None:
        """Go on where a state was taken; the window is read and cut again when the next
        batch is asked for.

        state (Mapping[str, Any]): Under "batches" in ``state``.
        run (Any): The epoch that the order was brought to.
        """
        self._begin(run)
        self.step = state["step"]
        self._n_windows = state["windows"]
        self._n_skipped = state["handed"]
        self._checksum = state["checksum"]
