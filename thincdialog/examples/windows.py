"""Batches of single-turn data, chosen by a batcher."""

import math
import zlib
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import numpy as np

from ..batchers import Batcher, Lengths, missing_rows, plan_window
from ..errors import DataError
from ..messages import Message
from .batch import NO_LIMIT, Batch, gathered
from .draws import window_generator
from .mixture import AnyOrder

# Number of additional labels, drawn from the whole window, that each reply of a batch is ranked
# against, as a fraction of the batch.
SHARE_OF_OTHERS = 0.25
# Number of batches that are planned together if nothing is padded.
POOL = 32
# Returns the lengths of the rows of a batch.
Measure = Callable[[Sequence[Message]], Lengths]


class Windows:
    """Read windows of rows in the epoch's order, and hand out each window in batches.

    A window has enough rows for ``batcher.buffer`` batches. It is measured and divided once, and
    handed out completely before the next window is read. Its batches are in random order, drawn
    by (seed, epoch, number of the window). So an example waits for at most as many batches as its
    window has: ``buffer`` batches if the batcher counts rows. With a budget of words there can be
    more, because batches are not completely full, and because the number of rows to read is
    estimated from the first rows, so later rows may be longer. But a window has at most twice the
    number of rows that ``buffer`` budgets hold (or twice ``buffer``).

    batcher (Batcher): Chooses the rows of each batch.
    measure (Measure): Returns the lengths of rows; called only if the batcher needs them.
    """

    def __init__(self, batcher: Batcher, measure: Measure):
        self.batcher, self.measure = batcher, measure
        self._run: Any = None
        # Number of windows of this epoch that were handed out completely; number of batches of all
        # such windows, in all epochs.
        self._n_windows = self._step = 0
        self._n_handed = 0
        self._close()

    def _close(self) -> None:
        """Close the window after it was handed out or dropped."""
        self._step += self._n_handed
        # Number of batches of this window that were handed out. After ``restore``, it is set before
        # the window is opened again.
        self._n_handed = 0
        self._checksum: Optional[int] = None
        self._window = gathered([])
        self._planned: List[np.ndarray] = []

    def has_left(self, run: Any) -> bool:
        """Return whether some rows of the epoch were read but not handed out yet.

        run (Any): Token of the epoch.
        """
        return self._run is run and len(self._planned) > 0

    def next(self, order: AnyOrder) -> Batch:
        """Return the next batch; an empty one at the end of the epoch.

        RAISES (DataError): If a row is larger than a batch may be, and the batcher
            treats this as an error.
        """
        if not self.batcher.needs_lengths:
            batch = order.read(self.batcher.sizes.at(self._step))
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
        batch.choices = self._window.take(np.concatenate((rows, self._other_rows()))).labelled()
        self._n_handed += 1
        if self._n_handed == len(self._planned):
            self._close()
            self._n_windows += 1
        return batch

    def _open(self, order: AnyOrder) -> None:
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
        if checksum is not None and checksum != _checksum_of(self._window, self._planned):
            text = "has other batches than when the state was saved"
            raise DataError(order.origin, f"{text}: give the same data and batcher to resume")

    def _plan(self, lengths: Lengths, order: AnyOrder) -> None:
        """Divide the window into batches, within the lowest limit of the steps that its batches
        reach."""
        limit, _ = self.batcher.window(self._step)
        while True:
            id_of = lambda row: self._window.ids()[row]  # noqa: E731
            fitted = self.batcher.fit(lengths, limit, id_of, order.origin)
            rng = window_generator(order.seed, order.epoch, self._n_windows)
            self._planned = [
                pool[batch]
                for pool in self._pools(fitted, limit)
                for batch in plan_window(self.batcher, fitted.take(pool), limit, rng)
            ]
            self._shuffled = rng.permutation(len(fitted.counts))
            # Padded tokens of labels must stay within the budget, so none are added.
            if self.batcher.unit == "words" and any(lengths.padded):
                self._shuffled = self._shuffled[:0]
            # If there are more batches than expected, they may reach steps with a lower limit.
            least = int(self.batcher.sizes.next(self._step, len(self._planned)).min())
            if least >= limit:
                break
            limit = least
        if fitted is not lengths:
            is_short = (fitted.counts != lengths.counts).any(axis=1, keepdims=True)
            self._window.max_tokens = np.where(is_short, fitted.counts, NO_LIMIT)

    def _pools(self, lengths: Lengths, limit: int) -> List[np.ndarray]:
        """Return the groups of rows that are divided into batches together: one group of all
        rows, or, for an agent that pads nothing, groups of some batches. Batches of similar lengths
        save such an agent almost no work, and it learns more from batches of mixed lengths."""
        n_rows, in_rows = len(lengths.counts), self.batcher.unit == "rows"
        if any(lengths.padded):
            return [np.arange(n_rows)]
        n_batches = (n_rows if in_rows else int(lengths.totals.sum())) / limit
        size = math.ceil(n_rows / max(1, round(n_batches / POOL)))
        if in_rows:
            size = math.ceil(size / limit) * limit
        return [np.arange(n_rows)[start : start + size] for start in range(0, n_rows, size)]

    def _other_rows(self) -> np.ndarray:
        """Return further rows of the window, of any length, whose labels the replies of the batch
        are ranked against, too. From labels of similar lengths alone, a ranker could not learn
        which length is right."""
        start = sum(map(len, self._planned[: self._n_handed]))
        n = math.ceil(SHARE_OF_OTHERS * len(self._planned[self._n_handed]))
        return self._shuffled[start : start + n]

    def state(self, order: AnyOrder) -> Dict[str, Any]:
        """Return the position in the epoch, and the number of batches that were handed out of the
        window that begins at this position, as JSON values."""
        shown = self._start if self.has_left(order.run) else order.state()
        place = {"step": self._step, "windows": self._n_windows, "handed": self._n_handed}
        checksum = _checksum_of(self._window, self._planned) if self._planned else self._checksum
        if self._run is not order.run:
            place = {"step": self._step + self._n_handed, "windows": 0, "handed": 0}
            checksum = None
        return {"shown": shown, "batches": {**place, "checksum": checksum}}

    def restore(self, state: Mapping[str, Any], run: Any) -> None:
        """Restore a state. The window is read and divided again when the next batch is requested.

        state (Mapping[str, Any]): The value of "batches" in ``state``.
        run (Any): Token of the epoch that the order was restored to.
        """
        self._close()
        self._run, self._step, self._n_windows = run, state["step"], state["windows"]
        self._n_handed, self._checksum = state["handed"], state["checksum"]


def _checksum_of(window: Batch, planned: Sequence[np.ndarray]) -> int:
    """Return a checksum (CRC-32) of a window and of its division into batches."""
    ids = "\n".join(map(str, window.ids()))
    rows = [row for batch in planned for row in (-1, *batch.tolist())]
    return zlib.crc32(
        f"{ids}\n{rows}\n{window.store.sample_checksum}".encode("utf-8", "surrogatepass")
    )
