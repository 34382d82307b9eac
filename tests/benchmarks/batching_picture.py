"""Draws the rows of batches as they lie in memory: words, and padding beside them."""

from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple

import numpy as np

from thincdialog.batchers import Lengths

# Rows drawn of each panel, cells between the two fields, lines between two batches.
N_LINES, GAP, RULE = 420, 10, 3
NOTHING, PADDING = 0, 1
COLOURS = ["#ffffff", "#f3d4cd", "#2f6690", "#e0912f"]
LABELS = ["", "padding", "context", "label"]


class Panel(NamedTuple):
    """Batches of one corpus, chosen in one way.

    title (str): Stands above it.
    lengths (Lengths): Of two fields.
    batches (Sequence[np.ndarray]): Of which the first are drawn.
    """

    title: str
    lengths: Lengths
    batches: Sequence[np.ndarray]


def _image(panel: Panel, widths: Tuple[int, int]) -> np.ndarray:
    """Numbers of colours; shape (N_LINES, cells of both fields)."""
    lines: List[np.ndarray] = []
    for batch in panel.batches:
        parts = []
        for field, width in enumerate(widths):
            counts, places = panel.lengths.counts[batch, field], np.arange(width)
            strip = np.where(places < counts.max(), PADDING, NOTHING)
            parts.append(np.where(places < counts[:, None], 2 + field, strip))
        gap = np.zeros((len(batch), GAP), dtype=int)
        lines.append(np.hstack([parts[0], gap, parts[1]]))
        lines.append(np.zeros((RULE, lines[-1].shape[1]), dtype=int))
        if sum(map(len, lines)) >= N_LINES:
            break
    return np.vstack(lines)[:N_LINES]


def save_picture(path: Path, pairs: Sequence[Tuple[Panel, Panel]]) -> None:
    """A line of panels for each pair: before, and after.

    RAISES (ImportError): Without matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    figure, axes = pyplot.subplots(
        len(pairs), 2, figsize=(13, 6.4 * len(pairs)), squeeze=False, layout="constrained"
    )
    for line, pair in zip(axes, pairs):
        longest = pair[0].lengths.counts.max(axis=0).tolist()
        widths = (longest[0], longest[1])
        for axis, panel in zip(line, pair):
            axis.imshow(
                _image(panel, widths),
                cmap=ListedColormap(COLOURS),
                vmin=0,
                vmax=len(COLOURS) - 1,
                aspect="auto",
                interpolation="nearest",
            )
            axis.set_title(panel.title, fontsize=13, loc="left", pad=8)
            begins = widths[0] + GAP
            axis.set_xticks([0, widths[0], begins, begins + widths[1]])
            axis.set_xticklabels(["0", f"{widths[0]} words", "0", f"{widths[1]} words"])
            for tick, side in zip(axis.get_xticklabels(), ("left", "right", "left", "right")):
                tick.set_horizontalalignment(side)
            axis.set_yticks([])
            axis.tick_params(length=0, labelsize=9, labelcolor="#666666")
            axis.spines[:].set_visible(False)
        line[0].set_ylabel("a line for each row, a gap between batches", color="#666666")
    figure.legend(
        handles=[Patch(color=COLOURS[kind], label=LABELS[kind]) for kind in (2, 3, PADDING)],
        loc="outside upper right",
        ncols=3,
        frameon=False,
        fontsize=12,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
