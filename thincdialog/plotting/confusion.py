"""A picture of which class was found for which."""

from pathlib import Path
from typing import Any, List, Union

from ..errors import MissingPackageError
from ..metrics.confusion import ConfusionMatrix
from .picture import save_figure

# Classes up to which every cell shows its count, and up to which classes are named.
MOST_COUNTS = 25
MOST_NAMES = 80
NO_REPLY = "(no reply)"


def draw_confusion(matrix: ConfusionMatrix, path: Union[str, Path]) -> None:
    """Draw a confusion matrix into a PNG (or SVG or PDF) file: a row for each class, dark
    where many of its examples were replied that class.

    matrix (ConfusionMatrix): The counts.
    path (Union[str, Path]): The file; its ending says the format.
    RAISES (MissingPackageError): If matplotlib is not installed.
    RAISES (OutputError): If the file cannot be written.
    """
    try:
        from matplotlib.colors import PowerNorm
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError("matplotlib", "plot", "a picture") from None
    replies, counts = matrix.table()
    names = matrix.classes
    # A class that is only replied has no examples, so no shares.
    shares = counts / counts.sum(axis=1, keepdims=True).clip(min=1)
    side = min(24.0, 2.5 + (0.45 if len(names) <= MOST_COUNTS else 0.17) * len(replies))
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    axes = figure.subplots()
    # Shades of the square root: what is confused now and then can be seen, too.
    shade = PowerNorm(0.5, vmin=0, vmax=1)
    image = axes.imshow(shares, cmap="Blues", norm=shade, interpolation="nearest")
    axes.set_xlabel("replied")
    axes.set_ylabel("class")
    if len(names) <= MOST_NAMES:
        size = 9 if len(names) <= MOST_COUNTS else 6
        axes.set_xticks(range(len(replies)), _labels(replies), rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), _labels(names), fontsize=size)
    if len(names) <= MOST_COUNTS:
        for row, column in zip(*counts.nonzero()):
            colour = "white" if shares[row, column] > 0.3 else "black"
            text = str(counts[row, column])
            axes.text(column, row, text, color=colour, ha="center", va="center", fontsize=8)
    figure.colorbar(image, ax=axes, label="share of the examples of the class", shrink=0.8)
    save_figure(figure, path)


def _labels(names: Any) -> List[str]:
    shown = [NO_REPLY if name is None else name for name in names]
    # Dollars would begin formulas.
    return [(f"{n[:29]}…" if len(n) > 30 else n).replace("$", r"\$") for n in shown]
