"""Curves as a picture in a file."""

from pathlib import Path
from typing import Any, List, Union

from ..errors import MissingPackageError
from .curves import AGAINST, DEV, TRAIN, Panel, one_split
from .picture import save_figure

# Okabe and Ito's, which colour-blind people tell apart as well; then dashes repeat them.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = "osD^vPX"
MAX_MARKERS = 16
GREY = "#555555"
PANEL_WIDTH = 4.8  # inches
SPLITS = {TRAIN: "training", DEV: "dev"}


def draw_figure(panels: List[Panel], path: Union[str, Path], against: str = "step") -> None:
    """Panels beside each other, in a file.

    panels (List[Panel]): From ``make_panels``.
    path (Union[str, Path]): Its ending says what is written, ".png" or ".svg" for instance.
    against (str): What they are laid over.
    RAISES (MissingPackageError): If matplotlib is not installed.
    RAISES (OutputError): If the file cannot be written.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MissingPackageError("matplotlib", "plot", "A picture in a file") from None
    runs = list(dict.fromkeys(line.run for panel in panels for line in panel.lines))
    if len(runs) > len(COLOURS):  # Their dashes tell runs apart, not training from dev.
        panels = [one_split(panel) for panel in panels]
    # Text of an SVG stays text, and the same curves give the same bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "thincdialog", "font.size": 10}):
        width = PANEL_WIDTH * len(panels) + 0.4
        # A letter takes about a twelfth of an inch, and a sign five of them.
        columns = max(1, int(width * 12 / (max(map(len, [*runs, "training"])) + 8)))
        height = 3.6 + 0.24 * -(-(len(runs) + 3) // columns)
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
        figure = Figure(figsize=(width, height), layout=layout)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for panel, ax in zip(panels, axes):
            _draw(panel, ax, runs)
            ax.set_xlabel(AGAINST[against])
        _legend(figure, panels, runs, columns)
        save_figure(figure, path, metadata={"Date": None} if _is_svg(path) else None)


def _is_svg(path: Union[str, Path]) -> bool:
    return Path(path).suffix == ".svg"


def _draw(panel: Panel, ax: Any, runs: List[str]) -> None:
    splits = list(dict.fromkeys(line.split for line in panel.lines))
    for line in panel.lines:
        number = runs.index(line.run)
        dashed = len(splits) > 1 and line.split == DEV
        ax.plot(
            line.xs,
            line.ys,
            color=COLOURS[number % len(COLOURS)],
            linestyle="--" if dashed else "-" if number < len(COLOURS) else "-.",
            marker=MARKERS[number % len(MARKERS)],
            markevery=_marked(len(line.xs), number),
            markersize=4,
            linewidth=1.6,
        )
        if line.best is not None:
            point = line.xs[line.best], line.ys[line.best]
            colour = COLOURS[number % len(COLOURS)]
            ax.plot(*point, marker="*", markersize=12, color=colour, markeredgecolor="black",
                    markeredgewidth=0.7, zorder=5)  # fmt: skip
    ax.set_title(panel.title, fontsize=11, loc="left")
    ax.grid(color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _marked(n_points: int, number: int) -> Any:
    """Which points bear a sign: all, or a few that are not those of the other lines."""
    every = max(1, n_points // MAX_MARKERS)
    return (number * every // len(MARKERS) % every, every)


def _legend(figure: Any, panels: List[Panel], runs: List[str], columns: int) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for number, run in enumerate(runs):
        style: Any = "-" if number < len(COLOURS) else "-."
        handles.append(
            Line2D(
                [],
                [],
                color=COLOURS[number % len(COLOURS)],
                linestyle=style,
                label=run,
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
            )  # fmt: skip
        )
    mixed = any(len({line.split for line in panel.lines}) > 1 for panel in panels)
    if mixed:
        handles.append(Line2D([], [], color=GREY, linestyle="-", label=SPLITS[TRAIN]))
        handles.append(Line2D([], [], color=GREY, linestyle="--", label=SPLITS[DEV]))
    if any(line.best is not None for panel in panels for line in panel.lines):
        handles.append(
            Line2D(
                [],
                [],
                color="white",
                marker="*",
                markersize=11,
                linestyle="",
                markeredgecolor="black",
                markeredgewidth=0.7,
                label="best",
            )  # fmt: skip
        )
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, frameon=False)
