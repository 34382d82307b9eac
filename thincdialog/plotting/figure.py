"""Draw curves into a picture file."""

from pathlib import Path
from typing import Any, Dict, List, Union

from ..errors import importing
from .curves import AGAINST, Panel
from .picture import new_figure, save_figure, with_grid

# The colour-blind safe palette of Okabe and Ito; further lines repeat its colours, dashed.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = "osD^vPX"
MAX_MARKERS = 16
# Size of a panel in inches, and maximum number of panels in a row.
PANEL_WIDTH, PANEL_HEIGHT = 4.8, 3.6
MOST_BESIDE = 3
# The star at a run's best row.
BEST: Dict[str, Any] = {"marker": "*", "markeredgecolor": "black", "markeredgewidth": 0.7}


def draw_figure(panels: List[Panel], path: Union[str, Path], against: str = "step") -> None:
    """Draw panels next to each other, in rows of up to three, into a file.

    panels (List[Panel]): Panels that ``make_panels`` returned.
    path (Union[str, Path]): Path of the file; its suffix determines the format, such as ".png" or
        ".svg".
    against (str): Key of the x axis, one of ``AGAINST``.
    RAISES (MissingPackageError): If matplotlib is not installed.
    RAISES (OutputError): If the file cannot be written.
    """
    with importing("plot", "A picture in a file"):
        import matplotlib
    runs = list(dict.fromkeys(line.run for panel in panels for line in panel.lines))
    # Keep text in an SVG as text, and write identical files for equal curves.
    same: Any = {"svg.fonttype": "none", "svg.hashsalt": "thincdialog", "font.size": 10}
    with matplotlib.rc_context(same):
        n_rows = -(-len(panels) // MOST_BESIDE)
        n_beside = -(-len(panels) // n_rows)
        width = PANEL_WIDTH * n_beside + 0.4
        # A character takes about a twelfth of an inch, and a line sample as much as five.
        columns = max(1, int(width * 12 / (max(map(len, [*runs, "best"])) + 8)))
        height = PANEL_HEIGHT * n_rows + 0.24 * -(-(len(runs) + 1) // columns)
        figure = new_figure(width, height)
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
        axes = figure.subplots(n_rows, n_beside, squeeze=False).ravel()
        ends = [x for panel in panels for line in panel.lines for x in (line.xs[0], line.xs[-1])]
        margin = 0.04 * (max(ends) - min(ends)) or 1.0
        for panel, ax in zip(panels, axes):
            _draw(panel, ax, runs)
            # All panels have the same x range, so that points above each other are comparable.
            ax.set_xlim(min(ends) - margin, max(ends) + margin)
            ax.set_xlabel(AGAINST[against])
        for ax in axes[len(panels) :]:
            ax.remove()
        _legend(figure, panels, runs, columns)
        is_svg = Path(path).suffix == ".svg"
        save_figure(figure, path, metadata={"Date": None} if is_svg else None)


def _style(number: int) -> Dict[str, Any]:
    """Return the style of a run's line."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": "-" if number < len(COLOURS) else "-.",
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4,
    }


def _draw(panel: Panel, ax: Any, runs: List[str]) -> None:
    for line in panel.lines:
        number = runs.index(line.run)
        style = _style(number)
        # Markers at all points, or at a few points that differ from those of other lines.
        every = max(1, len(line.xs) // MAX_MARKERS)
        marked = (number * every // len(MARKERS) % every, every)
        ax.plot(line.xs, line.ys, **style, markevery=marked, linewidth=1.6)
        if line.best is not None:
            point = line.xs[line.best], line.ys[line.best]
            ax.plot(*point, **BEST, markersize=12, color=style["color"], zorder=5)
    ax.set_title(panel.title, fontsize=11, loc="left")
    with_grid(ax)


def _legend(figure: Any, panels: List[Panel], runs: List[str], columns: int) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=run, **_style(number)) for number, run in enumerate(runs)]
    if any(line.best is not None for panel in panels for line in panel.lines):
        star = {**BEST, "color": "white", "markersize": 11, "linestyle": ""}
        handles.append(Line2D([], [], label="best", **star))
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, frameon=False)
