"""The contract of batchers, which choose the rows that an agent processes together."""

from itertools import accumulate
from typing import Any, Callable, List, Literal, Tuple

import numpy as np

from ..contract import place_of
from ..errors import DataError, PlanError
from ..registry import registry
from .lengths import Lengths
from .sizes import Sizes

# A window ends before the step at which a scheduled size has changed by more than this fraction.
MAX_CHANGE = 0.1


class Batcher:
    """Choose the rows of each batch of a batching world. Register a batcher with
    ``registry.batchers``.

    The world reads enough rows for ``buffer`` batches. A subclass divides them in ``plan()``:

        class Opposites(Batcher):
            # The longest row goes with the shortest.
            def plan(self, lengths, limit, rng):
                order = lengths.totals.argsort(kind="stable")
                half = len(order) // 2
                pairs = [order[[i, -1 - i]] for i in range(half)]
                return pairs + ([order[half : half + 1]] if len(order) % 2 else [])

        @registry.batchers("opposites.v1")
        def make_opposites() -> Batcher:
            return Opposites(Sizes(2), buffer=64)

    A batcher keeps no state between plans, so the same object can be used for training and
    evaluation, by any number of worlds, and by a resumed run. The same calls with an equal
    generator must return the same batches. Worlds shuffle the batches of a plan, so that they are
    not in the order of their lengths.

    sizes (Sizes): Maximum size of a batch at each step, in ``unit``.
    buffer (int): Number of batches to read rows for at a time, 1 or more.
    unit (str): Unit of the size: "rows", or "words" (tokens, including padding if it counts).
    needs_lengths (bool): Whether batches depend on lengths. If not, rows keep their order, and
        ``plan()`` is not called.
    oversize (str): How to treat a row with more words than the limit (see ``fit()``): "alone" puts
        it into a batch of its own, "truncate" shortens it, "error" raises an error.
    """

    unit: Literal["rows", "words"] = "rows"
    needs_lengths: bool = True
    oversize: Literal["alone", "truncate", "error"] = "alone"

    def __init__(self, sizes: Sizes, buffer: int = 256):
        if buffer < 1:
            raise ValueError(f"buffer = {buffer}, expected 1 batch or more")
        self.sizes = sizes
        self.buffer = buffer

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for missing attributes.
        if name in ("sizes", "buffer"):
            raise PlanError(
                f"{place_of(type(self))} has no {name}: call super().__init__(sizes, buffer) in "
                "its __init__(), with sizes such as Sizes(32)"
            )
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    def plan(self, lengths: Lengths, limit: int, rng: np.random.Generator) -> List[np.ndarray]:
        """Divide rows into batches.

        lengths (Lengths): Lengths of the rows, one row or more.
        limit (int): Maximum size of a batch at this step, in ``unit``.
        rng (np.random.Generator): Source of all random draws.
        RETURNS (List[np.ndarray]): Numbers of the rows of each batch, int64. Each row must be in
            exactly one batch.
        """
        raise PlanError(f"{place_of(type(self))} has no plan(lengths, limit, rng): add this method")

    def window(self, step: int) -> Tuple[int, int]:
        """Return the maximum size of the next batches, and the number of batches for which this
        size is valid: ``buffer``, or fewer if a schedule changes by more than a tenth within them.
        The returned size is the smallest one of these batches.

        step (int): Number of the next batch, counted from 0.
        """
        sizes = self.sizes.next(step, self.buffer)
        has_moved = np.abs(sizes - sizes[0]) > MAX_CHANGE * sizes[0]
        n_batches = int(has_moved.argmax()) or self.buffer
        return int(sizes[:n_batches].min()), n_batches

    def fit(
        self, lengths: Lengths, limit: int, id_of: Callable[[int], Any] = str, origin: str = "data"
    ) -> Lengths:
        """Return the number of words to read of each row: fewer for rows that are truncated.

        lengths (Lengths): Lengths of the rows.
        limit (int): Maximum size of a batch, in ``unit``.
        id_of (Callable[[int], Any]): Returns the id of a row's example, for the error.
        origin (str): Description of the data that has the rows, for the error.
        RAISES (DataError): If a row exceeds the limit and ``oversize`` is "error".
        """
        if self.unit == "rows" or self.oversize == "alone":
            return lengths
        over = np.flatnonzero(lengths.totals > limit)
        if not len(over):
            return lengths
        if self.oversize == "error":
            row, n_words = int(over[0]), lengths.totals[over[0]]
            text = (
                f"the example '{id_of(row)}' has {n_words} words (tokens), but a whole batch holds "
            )
            hint = 'raise the batcher\'s budget, or set its oversize = "alone" or "truncate"'
            raise DataError(origin, f"{text}{limit}: {hint}")
        counts = lengths.counts.copy()
        for row in over.tolist():
            counts[row] = _shorten(counts[row], limit)
        return Lengths(counts, lengths.padded)


registry.batchers.makes(Batcher)


def missing_rows(batcher: Batcher, step: int, n_rows: int, n_words: int) -> int:
    """Estimate the number of rows to read before planning; 0 if there are enough.

    step (int): Number of the next batch, counted from 0.
    n_rows (int): Number of rows that were read already.
    n_words (int): Number of words of these rows; each row counts as at least one word.
    """
    limit, n_batches = batcher.window(step)
    wanted = limit * n_batches
    if batcher.unit == "rows":
        return max(0, wanted - n_rows)
    # An estimate from few rows can be far off. So begin with one row for each batch, which is
    # never too many, and then at most double the number of rows at each call.
    estimate = -(-(wanted - n_words) * n_rows // n_words) if n_rows else n_batches
    return max(0, min(estimate, max(n_rows, n_batches)))


def plan_window(
    batcher: Batcher, lengths: Lengths, limit: int, rng: np.random.Generator
) -> List[np.ndarray]:
    """Plan batches, and return the numbers of the rows of each batch, the batches in random order.

    RAISES (PlanError): If the plan does not hold every row exactly once.
    """
    order, edges = plan_order(batcher, lengths, limit, rng)
    batches = [order[start:stop] for start, stop in zip(edges, edges[1:])]
    return [batches[number] for number in rng.permutation(len(batches)).tolist()]


def plan_order(
    batcher: Batcher, lengths: Lengths, limit: int, rng: np.random.Generator
) -> Tuple[np.ndarray, List[int]]:
    """Plan batches, and join them into one array.

    RETURNS (Tuple[np.ndarray, List[int]]): Numbers of the rows, one batch after the other; and
        the offset at which each batch begins, followed by the number of rows.
    RAISES (PlanError): If the plan does not hold every row exactly once.
    """
    n_rows = len(lengths.counts)
    batches = batcher.plan(lengths, limit, rng) if n_rows else []
    try:
        sizes = [len(batch) for batch in batches]
        if 0 in sizes:
            raise _plan_error(batcher, f"and no batch without rows, but returned {sizes.count(0)}")
        order = np.concatenate(batches) if len(sizes) else np.zeros(0, dtype=np.int64)
        if order.ndim != 1 or len(sizes) and order.dtype.kind not in "iu":
            raise TypeError
    except (TypeError, ValueError):
        raise _plan_error(batcher, "as a list of arrays of whole numbers (int)") from None
    if not np.array_equal(np.sort(order), np.arange(n_rows)):
        given = f"it got {n_rows} rows and returned {len(order)} in {len(sizes)} batches"
        raise _plan_error(batcher, f"{given}: {_first_mistake(order, n_rows)}")
    return order, [0, *accumulate(sizes)]


def _first_mistake(order: np.ndarray, n_rows: int) -> str:
    """Describe the first mistake of a plan, with a row as an example."""
    beyond = order[(order < 0) | (order >= n_rows)]
    if len(beyond):
        return f"there is no row {beyond[0]} (rows are counted from 0)"
    times = np.bincount(order, minlength=n_rows)
    what, rows = "missing", times == 0
    if not rows.any():
        what, rows = "returned more than once", times > 1
    return f"{rows.sum()} are {what}, such as row {rows.argmax()}"


def _plan_error(batcher: Batcher, text: str) -> PlanError:
    return PlanError(
        f"{place_of(type(batcher).plan)} must return every row in exactly one batch, {text}"
    )


def _shorten(counts: np.ndarray, limit: int) -> np.ndarray:
    """Return the length of each field after the longest fields are cut, so that their sum is the
    limit."""
    left, level = limit, 0
    for n_fields, count in zip(range(len(counts), 0, -1), np.sort(counts).tolist()):
        level = left // n_fields
        if count > level:
            break
        left -= count
    shorter = np.minimum(counts, level)
    # Fields that were cut share the remainder of the division.
    shorter[np.flatnonzero(counts > level)[: limit - int(shorter.sum())]] += 1
    return shorter
