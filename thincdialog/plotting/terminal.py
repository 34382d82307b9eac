"""Draw curves with text characters, for a terminal."""

from functools import partial
from typing import Any, List, Tuple

from ..errors import importing
from .curves import AGAINST, Line, Panel

# Number of rows of a panel, and of columns that are not part of its area.
HEIGHT, GUTTER = 14, 14
LEAST_WIDTH = 40
# Numbers among the terminal's 256 colours that are close to the colours of Okabe and Ito, which
# colour-blind people can also distinguish.
COLOURS = (32, 214, 36, 175, 117, 202, 227)
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BRAILLE = range(0x2800, 0x2900)


def draw_terminal(
    panels: List[Panel],
    against: str = "step",
    *,
    width: int = 80,
    colour: bool = False,
    braille: bool = True,
) -> str:
    """Draw panels below each other, followed by a legend of the letters on the lines.

    panels (List[Panel]): Panels that ``make_panels`` returned.
    against (str): Key of the x axis, one of ``AGAINST``.
    width (int): Number of columns; below ``LEAST_WIDTH``, that number is used.
    colour (bool): Whether the terminal supports colours; letters distinguish lines in any case.
    braille (bool): Whether the terminal can show Braille characters, which make fine lines;
        otherwise lines consist of "*".
    RAISES (MissingPackageError): If plotille is not installed.
    """
    with importing("plot", "A plot in the terminal"):
        import plotille
    runs = list(dict.fromkeys(line.run for panel in panels for line in panel.lines))
    letters = [NAMES[number % len(NAMES)] for number in range(len(runs))]
    colours = [COLOURS[number % len(COLOURS)] if colour else None for number in range(len(runs))]
    parts = []
    for panel in panels:
        figure = plotille.Figure()
        figure.width = max(width, LEAST_WIDTH) - GUTTER
        figure.height, figure.with_colors = HEIGHT, colour
        figure.set_x_limits(*_limits([x for line in panel.lines for x in line.xs], 0.0))
        figure.set_y_limits(*_limits([y for line in panel.lines for y in line.ys], 0.02))
        figure.color_mode = "byte"
        for line in panel.lines:
            number = runs.index(line.run)
            figure.plot(line.xs, line.ys, lc=colours[number])
            if len(runs) > 1:
                figure.text(*_places(line, number), [letters[number]] * 3, lc=colours[number])
        parts.append(shown(figure, panel.title, AGAINST[against]))
    if len(runs) > 1:
        names = map("{}  {}".format, letters, runs)
        parts.append("\n".join(map(partial(plotille.color, mode="byte"), names, colours)))
    text = "\n\n".join(parts)
    return text if braille else text.translate(dict.fromkeys(BRAILLE, "*"))


def shown(figure: Any, title: str, x_label: str) -> str:
    """Return a figure of plotille as text, with a title above it, and with short numbers at the
    axes.

    x_label (str): Label of the x axis.
    """
    figure.origin, figure.x_label = False, ""
    figure.x_ticks_fkt = figure.x_ticks_fkt or (lambda low, high: f"{low:.4g}")
    figure.y_ticks_fkt = lambda low, high: f"{low:.3g}"
    # In some fonts, the Braille character without dots is wider than a space.
    _, *rows, axis, ticks = figure.show().replace(chr(BRAILLE[0]), " ").split("\n")
    below = [axis.removesuffix("-> ()"), ticks, x_label.rjust(figure.width + GUTTER)]
    return "\n".join(row.rstrip() for row in [title, *rows, *below])


def _limits(values: List[float], margin: float) -> Tuple[float, float]:
    low, high = min(values), max(values)
    spread = (high - low) * margin if high > low else abs(low) * 0.1 or 1.0
    return low - spread, high + spread


def _places(line: Line, number: int) -> Tuple[List[float], List[float]]:
    """Return three points of a line for its letter, away from those of other lines."""
    last = len(line.xs) - 1
    places = [round(last * (part + (number % 8 + 1) / 9) / 3) for part in range(3)]
    return [line.xs[place] for place in places], [line.ys[place] for place in places]
