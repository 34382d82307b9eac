"""A picture of what thresholds do."""

from pathlib import Path
from typing import Any, List, Union

import numpy as np

from ..evaluation.coverage import Guesses, covered, of_scope
from .picture import drawing, save_figure

GRID = {"color": "#DDDDDD", "linewidth": 0.6}


def draw_coverage(guesses: Guesses, threshold: float, path: Union[str, Path]) -> None:
    """Draw the precision over the share of the texts that get a class into a PNG, SVG or PDF file.
    If some texts are out of scope, a second curve has the share of them that is found over the
    accuracy of the others. A star marks the model's threshold.

    guesses (Guesses): The best class of each example.
    threshold (float): The model's.
    RAISES (MissingPackageError): If matplotlib is not installed.
    RAISES (OutputError): If the file cannot be written.
    """
    Figure = drawing("matplotlib.figure", "a picture").Figure
    ticks = np.unique(np.abs(guesses.confidence))
    thresholds = [*ticks[:: max(1, len(ticks) // 500)], threshold]
    has_outside = not guesses.is_inside.all()
    figure = Figure(figsize=(9.6 if has_outside else 4.8, 3.6), layout="constrained")
    axes = figure.subplots(1, 1 + has_outside, squeeze=False)[0]
    names = [("share of texts that get a class", "precision: share of these that is right")]
    curves: List[Any] = [[covered(guesses, each)[1:] for each in thresholds]]
    if has_outside:
        names.append(("accuracy in scope", "recall of texts out of scope"))
        curves.append([tuple(of_scope(guesses, each).values())[:2] for each in thresholds])
    for ax, (x, y), shares in zip(axes, names, curves):
        xs, ys = ([share.value for share in column] for column in zip(*shares))
        ax.plot(xs[:-1], ys[:-1], color="#0072B2")
        ax.plot(xs[-1], ys[-1], "*", color="#E69F00", markeredgecolor="black", markersize=12)
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ax.grid(**GRID)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)
