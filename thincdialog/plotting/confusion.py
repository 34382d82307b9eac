"""Draw a confusion matrix."""

from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

import numpy

from ..errors import importing
from ..metrics.confusion import ConfusionMatrix
from .picture import new_figure, save_figure

# Up to MOST_COUNTS classes, every cell shows its count. With more than MOST_NAMES classes, only
# N_SHOWN classes are shown.
MOST_COUNTS = 40
MOST_NAMES = 80
N_SHOWN = 30
NO_REPLY = "(no reply)"


def draw_confusion(matrix: ConfusionMatrix, path: Union[str, Path]) -> None:
    """Draw a confusion matrix into a PNG (or SVG or PDF) file, with a row for each class and a
    column for each reply. The darker a cell, the larger its fraction of the row's examples. With
    more than ``MOST_NAMES`` classes, only the most confused classes have their own rows; the others
    share one.

    matrix (ConfusionMatrix): The counts.
    path (Union[str, Path]): Path of the file; its suffix determines the format.
    RAISES (MissingPackageError): If matplotlib is not installed.
    RAISES (OutputError): If the file cannot be written.
    """
    with importing("plot", "A picture in a file"):
        from matplotlib.colors import PowerNorm
    names, replies, counts = _table(matrix)
    # A class that occurs only as a reply has no examples, so its fractions are 0.
    shares = counts / counts.sum(axis=1, keepdims=True).clip(min=1)
    side = 3.5 + (0.42 if len(names) <= MOST_COUNTS else 0.2) * len(replies)
    figure = new_figure(side + 1, side)
    axes = figure.subplots()
    # Shades follow the square root, so that rare confusions are visible too.
    shade = PowerNorm(0.5, vmin=0, vmax=1)
    image = axes.imshow(shares, cmap="Blues", norm=shade, interpolation="nearest")
    axes.set_xlabel("replied")
    axes.set_ylabel("class")
    size = 10 if len(names) <= MOST_COUNTS else 8
    axes.set_xticks(range(len(replies)), _labels(replies), rotation=90, fontsize=size)
    axes.set_yticks(range(len(names)), _labels(names), fontsize=size)
    if len(matrix.classes) > len(names):
        n = len(matrix.classes)
        axes.set_title(f"the {N_SHOWN} of {n} classes that are confused most, the others combined")
    if len(names) <= MOST_COUNTS:
        for row, column in zip(*counts.nonzero()):
            colour = "white" if shares[row, column] > 0.3 else "black"
            text = str(counts[row, column])
            axes.text(column, row, text, color=colour, ha="center", va="center", fontsize=8)
    figure.colorbar(image, ax=axes, label="share of the examples of the class", shrink=0.8)
    save_figure(figure, path)


def _table(matrix: ConfusionMatrix) -> Tuple[List[str], List[Optional[str]], numpy.ndarray]:
    """Return the names of rows and of columns, and the counts."""
    if len(matrix.classes) <= MOST_NAMES:
        replies, counts = matrix.table()
        return matrix.classes, replies, counts
    others = f"({len(matrix.classes) - N_SHOWN} others)"
    matrix = matrix.summed(N_SHOWN, others)
    replies, counts = matrix.table()
    # The row and the column of the other classes come last among the classes.
    names = [name for name in matrix.classes if name != others] + [others]
    columns = [*names, *replies[len(names) :]]
    rows = [matrix.classes.index(name) for name in names]
    return names, columns, counts[rows][:, [replies.index(name) for name in columns]]


def _labels(names: Any) -> List[str]:
    shown = [NO_REPLY if name is None else name for name in names]
    # Dollar signs would begin formulas.
    return [(f"{n[:29]}…" if len(n) > 30 else n).replace("$", r"\$") for n in shown]
