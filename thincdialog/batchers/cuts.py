"""Cut an ordered line of rows into batches within a budget of cells. A cell holds one token, or the
padding in its place."""

from typing import List, Sequence

import numpy as np

# Fixed cost of a batch in addition to its cells, as a fraction of the budget. Without it,
# half-empty batches would cost nothing, but they waste time.
OVERHEAD = 0.1
# Number of blocks that make about one batch. A line is cut between blocks only.
BLOCKS_OF_A_BATCH = 12
# Number of blocks in a section of the line. Each section is cut independently, all at once.
BLOCKS_PER_SECTION = 96
_NEVER = 1e18


def cut_sorted(counts: np.ndarray, padded: Sequence[bool], budget: int) -> List[int]:
    """Cut rows that are sorted from the longest to the shortest, and differ in at most one padded
    field, into batches that are as full as possible. No other cut of this line needs fewer batches;
    if all fields are padded, no other division of the rows needs fewer, either.

    counts (np.ndarray): Number of words of each field of each row, shape (n_rows, n_fields),
        int64. Padded fields never increase from row to row, and each row has between 1 and
        ``budget`` words.
    padded (Sequence[bool]): Whether each field is padded to a rectangle.
    budget (int): Maximum number of cells of a batch.
    RETURNS (List[int]): Number of the first row of each batch, followed by the number of rows.
    """
    is_padded = np.array(padded)
    widths = counts[:, is_padded].sum(axis=1).tolist()
    n_rows, sums = len(counts), np.zeros(0)
    if not is_padded.all():
        sums = np.append(0, counts[:, ~is_padded].sum(axis=1).cumsum())
    edges = [0]
    while edges[-1] < n_rows:
        start = edges[-1]
        width = widths[start]
        stop = min(start + budget // width, n_rows) if width else n_rows
        if len(sums):
            stop = min(stop, int(sums.searchsorted(sums[start] + budget, side="right")) - 1)
        if len(sums) and width:
            rectangles = width * np.arange(1, stop - start + 1)
            cells = sums[start + 1 : stop + 1] - sums[start] + rectangles
            stop = start + int(cells.searchsorted(budget, side="right"))
        edges.append(stop)
    return edges


def cut_line(counts: np.ndarray, padded: Sequence[bool], budget: int) -> List[int]:
    """Cut a line of rows with several padded fields at the lowest cost, by dynamic programming over
    blocks of neighbouring rows. The cost is the number of all cells, plus a tenth of the budget for
    each batch. The line is cut in sections, all at once.

    counts (np.ndarray): As for ``cut_sorted``, but instead of being sorted, neighbouring rows have
        similar lengths.
    padded (Sequence[bool]): Whether each field is padded to a rectangle.
    budget (int): Maximum number of cells of a batch.
    RETURNS (List[int]): Number of the first row of each batch, followed by the number of rows.
    """
    is_padded = np.array(padded)
    rectangles = np.ascontiguousarray(counts.T[is_padded])
    sums = np.append(0, counts.sum(axis=1).cumsum())
    plain = np.append(0, counts[:, ~is_padded].sum(axis=1).cumsum())
    edges = _block_edges(rectangles, plain, sums, budget)
    # A batch has at least as many cells as words, which limits the number of its blocks.
    last = sums[edges].searchsorted(sums[edges[:-1]] + budget, side="right") - 1
    n_lags = int((last - np.arange(len(last))).max())
    costs = _costs(rectangles, plain, budget, edges, n_lags)
    starts = _cheapest(costs, OVERHEAD * budget)
    return [*edges[starts].tolist(), len(counts)]


def _block_edges(
    rectangles: np.ndarray, plain: np.ndarray, sums: np.ndarray, budget: int
) -> np.ndarray:
    """Return the first row of each block, followed by the number of rows. Each block fits into a
    batch."""
    blocks = (sums[:-1] * min(1.0, BLOCKS_OF_A_BATCH / budget)).astype(np.int64)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(blocks)) + 1, [len(blocks)]])
    while True:
        starts, stops = edges[:-1], edges[1:]
        widths = np.maximum.reduceat(rectangles, starts, axis=1).sum(axis=0)
        cells = widths * (stops - starts) + plain[stops] - plain[starts]
        too_big = np.flatnonzero(cells > budget)
        if not len(too_big):
            return edges
        # The lengths of these rows differ too much, so divide the block in two.
        edges = np.insert(edges, too_big + 1, (starts[too_big] + stops[too_big]) // 2)


def _costs(
    rectangles: np.ndarray, plain: np.ndarray, budget: int, edges: np.ndarray, n_lags: int
) -> np.ndarray:
    """Return the number of cells of each batch that ends with a block and begins ``lag`` blocks
    earlier, or ``_NEVER`` if it exceeds the budget; shape (n_lags, n_blocks), float64."""
    n_blocks = len(edges) - 1
    widest = np.maximum.reduceat(rectangles, edges[:-1], axis=1).astype(np.float64)
    running = widest.copy()
    places, has_plain = edges.astype(np.float64), bool(plain[-1])
    plain_ends = plain[edges].astype(np.float64)
    costs = np.full((n_lags, n_blocks), _NEVER)
    for lag in range(n_lags):
        n_starts = n_blocks - lag
        if lag:
            np.maximum(running[:, :n_starts], widest[:, lag:], out=running[:, :n_starts])
        cells = costs[lag, lag:]
        np.subtract(places[lag + 1 :], places[:n_starts], out=cells)
        cells *= running[:, :n_starts].sum(axis=0)
        if has_plain:
            cells += plain_ends[lag + 1 :] - plain_ends[:n_starts]
        if cells.min() > budget:
            costs = costs[:lag]
            break
    costs[costs > budget] = _NEVER
    return costs


def _cheapest(costs: np.ndarray, overhead: float) -> np.ndarray:
    """Return the number of the first block of each batch of the cheapest cut.

    costs (np.ndarray): From ``_costs``.
    overhead (float): Fixed cost of a batch, in cells.
    """
    n_lags, n_blocks = costs.shape
    n_sections = -(-n_blocks // BLOCKS_PER_SECTION)
    n_steps = -(-n_blocks // n_sections)
    # Shape (n_steps, n_lags, n_sections), the greatest lag first. The blocks that pad the last
    # section have no cost.
    flat = np.full((n_lags, n_sections * n_steps), _NEVER, dtype=np.float32)
    np.add(costs[::-1], overhead, out=flat[:, :n_blocks], casting="same_kind")
    flat[-1, n_blocks:] = 0
    table = flat.reshape(n_lags, n_sections, n_steps).transpose(2, 0, 1).copy()
    # Cost of the cheapest way from the start of a section to the end of each block. The first
    # n_lags entries are for positions before the first block of the section.
    totals = np.full((n_lags + n_steps, n_sections), _NEVER, dtype=np.float32)
    totals[n_lags - 1] = 0
    ways = np.empty((n_lags, n_sections), dtype=np.float32)
    for step in range(n_steps):
        np.add(totals[step : step + n_lags], table[step], out=ways)
        np.minimum.reduce(ways, axis=0, out=totals[n_lags + step])
    # Follow the cheapest ways back from the ends, one batch of each section at a time.
    starts = []
    lags, sections = np.arange(n_lags)[:, None], np.arange(n_sections)
    stops = np.full(n_sections, n_steps)
    while len(sections):
        ways = totals[stops - 1 + lags, sections] + table[stops - 1, lags, sections]
        stops = stops - n_lags + ways.argmin(axis=0)
        starts.append(sections * n_steps + stops)
        sections, stops = sections[stops > 0], stops[stops > 0]
    found = np.sort(np.concatenate(starts))
    return found[found < n_blocks]
