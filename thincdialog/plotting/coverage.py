"""A picture of the effects of a classifier's threshold."""

from pathlib import Path
from typing import Union

import numpy as np

from ..evaluation.coverage import Guesses, shares_at
from .picture import new_figure, save_figure, with_grid


def draw_coverage(guesses: Guesses, threshold: float, path: Union[str, Path]) -> None:
    """Draw the precision over the fraction of texts that are answered with a class, into a PNG, SVG
    or PDF file. If some texts are out of scope, a second panel shows the fraction of these that is
    found, over the accuracy on the other texts. A star marks the model's threshold.

    guesses (Guesses): The best class of each example.
    threshold (float): The model's threshold.
    path (Union[str, Path]): Path of the file; its suffix determines the format.
    RAISES (MissingPackageError): If matplotlib is not installed.
    RAISES (OutputError): If the file cannot be written.
    """
    ticks = np.unique(np.abs(guesses.confidence))
    thresholds = [*ticks[:: max(1, len(ticks) // 500)], threshold]
    found = [shares_at(guesses, each) for each in thresholds]
    panels = [("answered", "precision")]
    if not guesses.is_inside.all():
        panels.append(("in-scope accuracy", "out-of-scope recall"))
    figure = new_figure(4.8 * len(panels), 3.6)
    for ax, (x, y) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        xs, ys = [row[x][0] for row in found], [row[y][0] for row in found]
        ax.plot(xs[:-1], ys[:-1], color="#0072B2")
        star = {"color": "#E69F00", "markeredgecolor": "black", "markersize": 12}
        ax.plot(xs[-1], ys[-1], "*", **star, label=f"threshold of the model, {threshold:.4g}")
        ax.legend(loc="lower left")
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        with_grid(ax)
    save_figure(figure, path)
