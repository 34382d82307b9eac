"""Draw the curve of a learning-rate range test."""

import math
from pathlib import Path
from typing import List, Optional, Tuple, Union

from ..inspection.find_lr import LearnRates
from .picture import new_figure, save_figure
from .terminal import shown


def terminal_curve(found: LearnRates) -> Optional[str]:
    """Draw the losses over the learning rates for a terminal; return None if plotille is not
    installed.

    found (LearnRates): Result of ``find_lr``.
    """
    try:
        import plotille
    except ImportError:
        return None
    figure = plotille.Figure()
    figure.width, figure.height = 60, 15  # Size without the axes.
    figure.with_colors = False
    figure.x_ticks_fkt = lambda low, high: f"{10**low:.0e}"
    low, high = _limits(found)
    figure.set_y_limits(low, high)
    logs = [math.log10(rate) for rate in found.learn_rates]
    figure.set_x_limits(logs[0], logs[-1])
    figure.plot(logs, [min(max(loss, low), high) for loss in found.smoothed])
    return shown(figure, "loss", "learn_rate")


def save_picture(found: LearnRates, path: Union[str, Path]) -> None:
    """Draw losses, smoothed losses and the suggestion into a picture file.

    found (LearnRates): Result of ``find_lr``.
    path (Union[str, Path]): Path of the file; its suffix determines the format (.png, .svg, .pdf).
    RAISES (MissingPackageError): If matplotlib is not installed.
    RAISES (OutputError): If the file cannot be written.
    """
    figure = new_figure(7, 4)
    axes = figure.add_subplot()
    axes.plot(found.learn_rates, found.losses, color="0.75", linewidth=1, label="of each batch")
    axes.plot(found.learn_rates, found.smoothed, color="tab:blue", linewidth=2, label="smoothed")
    if found.suggestion is not None:
        label = f"suggestion {found.suggestion:g}"
        axes.axvline(found.suggestion, color="tab:red", linestyle="--", label=label)
    axes.set_xscale("log")
    axes.set_ylim(*_limits(found))
    axes.set_xlabel("learn_rate")
    axes.set_ylabel("mean loss of the step (nats)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    save_figure(figure, path)


def curve_rows(found: LearnRates, n: int = 20) -> List[List[str]]:
    """Return the header and rows of a table with the curve at ``n`` rates."""
    last = len(found.losses) - 1
    places = sorted({round(last * i / (n - 1)) for i in range(n)}) if last > 0 else [0]
    rows = [["learn_rate", "loss", "smoothed"]]
    for i in places[: last + 1]:
        values = (found.losses[i], found.smoothed[i])
        rows.append([f"{found.learn_rates[i]:.2g}", *(f"{value:.4f}" for value in values)])
    return rows


def _limits(found: LearnRates) -> Tuple[float, float]:
    """Return the limits of the loss axis: from the lowest loss to somewhat above the first losses,
    because a diverging loss would flatten the curve."""
    low, start = min(found.smoothed), max(found.smoothed[: max(3, len(found.smoothed) // 4)])
    margin = max(0.05 * (start - low), 1e-6)
    return low - margin, max(start + 4 * margin, min(max(found.smoothed), 1.5 * start) + margin)
