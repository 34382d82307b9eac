"""Cuts a line of rows into batches within a budget of cells."""

from typing import List, Sequence, Tuple

import numpy as np

# What a batch costs beside its cells, as a share of the budget: half-empty batches
# waste nothing but time.
OVERHEAD = 0.1
# A line is cut between blocks of about this share of a batch.
BLOCKS_OF_A_BATCH = 16
# Blocks of a stretch of the line that is cut by itself; all stretches are cut at once.
BLOCKS_OF_A_STRETCH = 256
_NEVER = 1e18


def cut_sorted(counts: np.ndarray, padded: Sequence[bool], budget: int) -> List[Tuple[int, int]]:
    """Cut rows of which at most one field is padded, longest first: each batch as full
    as can be. No cut needs fewer batches.

    counts (np.ndarray): Shape (n_rows, n_fields), int64, falling in the padded field;
        no row is beyond the budget.
    padded (Sequence[bool]): Which field takes a rectangle.
    budget (int): Cells of a batch.
    RETURNS (List[Tuple[int, int]]): First row, and one past the last, of each batch.
    """
    width = counts[:, list(padded)].sum(axis=1)
    plain = counts[:, [not field for field in padded]].sum(axis=1)
    sums = np.concatenate([[0], plain.cumsum()])
    n_rows, has_plain = len(counts), bool(sums[-1])
    widths = width.tolist()
    cuts = []
    start = 0
    while start < n_rows:
        most = budget // widths[start] if widths[start] else n_rows
        stop = min(start + most, n_rows)
        if has_plain and stop > start:
            cells = sums[start + 1 : stop + 1] - sums[start]
            if widths[start]:
                cells = cells + widths[start] * np.arange(1, stop - start + 1)
            stop = start + int(np.searchsorted(cells, budget, side="right"))
        stop = max(stop, start + 1)
        cuts.append((start, stop))
        start = stop
    return cuts


def cut_line(counts: np.ndarray, padded: Sequence[bool], budget: int) -> List[Tuple[int, int]]:
    """Cut a line of rows of several padded fields where it costs least: the sum of the
    cells, and a tenth of the budget for each batch, by dynamic programming over blocks
    of neighbouring rows. The line is cut in stretches, all at the same time.

    counts (np.ndarray): Shape (n_rows, n_fields), int64, neighbours alike; no row is
        beyond the budget.
    padded (Sequence[bool]): Which fields take a rectangle.
    budget (int): Cells of a batch.
    RETURNS (List[Tuple[int, int]]): First row, and one past the last, of each batch.
    """
    edges = _block_edges(counts, padded, budget)
    costs = _costs(counts, padded, budget, edges)
    n_blocks = len(edges) - 1
    n_stretches = -(-n_blocks // BLOCKS_OF_A_STRETCH)
    n_steps = -(-n_blocks // n_stretches)
    chosen = _cheapest(costs, n_stretches, n_steps)
    cuts = []
    for stretch, lags in enumerate(chosen.T.tolist()):
        step = n_steps - 1
        while step >= 0:
            block = stretch * n_steps + step
            if block < n_blocks:
                cuts.append((int(edges[block - lags[step]]), int(edges[block + 1])))
            step -= lags[step] + 1
    return cuts


def _block_edges(counts: np.ndarray, padded: Sequence[bool], budget: int) -> np.ndarray:
    """Where blocks begin, and the number of rows; a block fits into a batch."""
    n_rows = len(counts)
    totals = counts.sum(axis=1)
    blocks = (totals.cumsum() - totals) // max(1.0, budget / BLOCKS_OF_A_BATCH)
    is_start = np.diff(blocks, prepend=-1.0) > 0
    starts = np.flatnonzero(is_start)
    cells = _cells(_widest(counts, starts), _sums(counts), starts, n_rows, padded)
    # Rows that are little alike: each a block of its own.
    for block in np.flatnonzero(cells > budget).tolist():
        stop = starts[block + 1] if block + 1 < len(starts) else n_rows
        is_start[starts[block] : stop] = True
    return np.append(np.flatnonzero(is_start), n_rows)


def _costs(
    counts: np.ndarray, padded: Sequence[bool], budget: int, edges: np.ndarray
) -> np.ndarray:
    """Cost of the batch that ends with a block and begins ``lag`` blocks before it;
    shape (n_lags, n_blocks)."""
    overhead = OVERHEAD * budget
    starts, stops = edges[:-1], edges[1:]
    widest = _widest(counts, starts)
    sums = _sums(counts)
    n_blocks = len(starts)
    running = widest
    costs = []
    for lag in range(n_blocks):
        if lag:
            running = np.maximum(running[:-1], widest[lag:])
        n_rows = stops[lag:] - starts[: n_blocks - lag]
        cells = np.zeros(n_blocks - lag)
        for field, is_padded in enumerate(padded):
            if is_padded:
                cells += n_rows * running[:, field]
            else:
                cells += sums[stops[lag:], field] - sums[starts[: n_blocks - lag], field]
        fits = cells <= budget
        if not fits.any():
            break
        cost = np.full(n_blocks, _NEVER)
        cost[lag:][fits] = cells[fits] + overhead
        costs.append(cost)
    return np.array(costs)


def _cheapest(costs: np.ndarray, n_stretches: int, n_steps: int) -> np.ndarray:
    """Blocks before the last one in the batch that ends with each block, on the cheapest
    way there from the start of its stretch; shape (n_steps, n_stretches)."""
    n_lags, n_blocks = costs.shape
    # Shape (n_stretches, n_steps, n_lags), the greatest lag first. What is missing in
    # the last stretch costs nothing.
    flat = np.full((n_stretches * n_steps, n_lags), _NEVER)
    flat[:n_blocks] = costs.T[:, ::-1]
    flat[n_blocks:, -1] = 0
    table = flat.reshape(n_stretches, n_steps, n_lags)
    totals = np.full((n_stretches, n_steps + n_lags), _NEVER)
    totals[:, n_lags - 1] = 0
    chosen = np.empty((n_steps, n_stretches), dtype=np.int64)
    stretches = np.arange(n_stretches)
    for step in range(n_steps):
        ways = totals[:, step : step + n_lags] + table[:, step]
        best = ways.argmin(axis=1)
        totals[:, n_lags + step] = ways[stretches, best]
        chosen[step] = n_lags - 1 - best
    return chosen


def _widest(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(counts, starts, axis=0)


def _sums(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros((1, counts.shape[1]), dtype=np.int64), counts.cumsum(axis=0)])


def _cells(
    widest: np.ndarray, sums: np.ndarray, starts: np.ndarray, n_rows: int, padded: Sequence[bool]
) -> np.ndarray:
    stops = np.append(starts[1:], n_rows)
    plain = sums[stops] - sums[starts]
    return np.where(padded, widest * (stops - starts)[:, None], plain).sum(axis=1)
