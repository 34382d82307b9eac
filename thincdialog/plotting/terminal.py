"""Draw curves with text characters, for a terminal."""

import math
from typing import Dict, List, Optional, Tuple

import numpy

from ..errors import importing
from .curves import AGAINST, Line, Panel

HEIGHT = 14
# Numbers among the terminal's 256 colours that are close to the colours of Okabe and Ito, which
# colour-blind people can also distinguish.
COLOURS = (32, 214, 36, 175, 117, 202, 227)
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BRAILLE = range(0x2800, 0x2900)
# Style of each run's line: its letter, and its colour if there is one.
Style = Dict[str, Tuple[str, Optional[int]]]


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
    width (int): Number of columns, 40 or more.
    colour (bool): Whether the terminal supports colours; letters distinguish lines in any case.
    braille (bool): Whether the terminal can show Braille characters, which make fine lines;
        otherwise lines consist of "*".
    RAISES (MissingPackageError): If plotille is not installed.
    """
    runs = list(dict.fromkeys(line.run for panel in panels for line in panel.lines))
    style = {
        run: (NAMES[i % len(NAMES)], COLOURS[i % len(COLOURS)] if colour else None)
        for i, run in enumerate(runs)
    }
    parts = [_draw(panel, against, width, style) for panel in panels]
    if len(runs) > 1:
        legend = [(f"{letter}  {run}", number) for run, (letter, number) in style.items()]
        parts.append("\n".join(t if n is None else f"\x1b[38;5;{n}m{t}\x1b[0m" for t, n in legend))
    text = "\n\n".join(parts)
    if braille:
        return text
    return text.translate({**dict.fromkeys(BRAILLE, "*"), **str.maketrans("┤│└─┬", "||+-+")})


def _draw(panel: Panel, against: str, width: int, style: Style) -> str:
    with importing("plot", "A plot in the terminal"):
        import plotille
    low, high = _limits([y for line in panel.lines for y in line.ys])
    left, right = _limits([x for line in panel.lines for x in line.xs], margin=0.0)
    y_ticks = round_ticks(low, high, HEIGHT // 2)
    y_labels = tick_labels(y_ticks)
    gutter = max(map(len, y_labels)) + 1
    columns = max(width - gutter - 3, 20)
    canvas = plotille.Canvas(columns, HEIGHT, left, low, right, high, mode="byte")
    for line in panel.lines:
        _, colour = style[line.run]
        points = list(zip(line.xs, line.ys))
        for start, end in zip(points, points[1:]):
            canvas.line(*start, *end, color=colour)
        if len(points) == 1:
            canvas.point(*points[0], color=colour)
    # Draw the letters last, so that no line covers them.
    if len(style) > 1:
        for line in panel.lines:
            letter, colour = style[line.run]
            for x, y in _letter_places(line, list(style).index(line.run), left, right):
                canvas.text(x, y, letter, color=colour)
    # In some fonts, the Braille character without dots is wider than a space.
    rows = canvas.plot().replace(chr(BRAILLE[0]), " ").split("\n")
    labels = {_place(tick, low, high, HEIGHT): text for tick, text in zip(y_ticks, y_labels)}
    lines = [panel.title]
    for i, row in enumerate(rows):
        label = labels.get(len(rows) - 1 - i)
        lines.append(f"{label or '':>{gutter}} {'┤' if label else '│'}{row}".rstrip())
    lines += _x_axis(left, right, columns, gutter)
    lines.append(f"{AGAINST[against]:>{gutter + 2 + columns}}")
    return "\n".join(lines)


def _limits(values: List[float], margin: float = 0.02) -> Tuple[float, float]:
    low, high = min(values), max(values)
    if high == low:
        spread = abs(low) * 0.1 or 1.0
        return low - spread, high + spread
    spread = (high - low) * margin
    return low - spread, high + spread


def _place(value: float, low: float, high: float, cells: int) -> int:
    return min(int((value - low) / (high - low) * cells), cells - 1)


def _letter_places(line: Line, number: int, left: float, right: float) -> List[Tuple[float, float]]:
    """Return three places for a line's letter, away from those of other lines."""
    places = []
    for part in range(3):
        share = (part + (number % 8 + 1) / 9) / 3
        x = min(max(left + (right - left) * share, line.xs[0]), line.xs[-1])
        places.append((x, float(numpy.interp(x, line.xs, line.ys))))
    return places


def _x_axis(left: float, right: float, columns: int, gutter: int) -> List[str]:
    ticks = round_ticks(left, right, max(columns // 10, 2))
    axis, below = ["─"] * columns, [" "] * columns
    end = -1
    for tick, label in zip(ticks, tick_labels(ticks)):
        place = _place(tick, left, right, columns)
        start = min(max(place - len(label) // 2, 0), columns - len(label))
        if start > end:
            axis[place] = "┬"
            below[start : start + len(label)] = label
            end = start + len(label)
    space = " " * (gutter + 1)
    return [f"{space}└{''.join(axis)}", f"{space} {''.join(below)}".rstrip()]


def round_ticks(low: float, high: float, most: int) -> List[float]:
    """Return the multiples of 1, 2 or 5 times a power of ten within two limits.

    low (float): Lower limit.
    high (float): Upper limit, above the lower one.
    most (int): Maximum number of ticks.
    """
    rough = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    # Use the next larger step if rounding leaves one tick too many.
    for factor in (1, 2, 5, 10, 20):
        step = factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            break
    return [number * step for number in range(first, last + 1)]


def tick_labels(ticks: List[float]) -> List[str]:
    """Format the ticks, all with the number of decimals that the finest tick needs."""
    if not ticks:
        return []
    step = min((b - a for a, b in zip(ticks, ticks[1:])), default=abs(ticks[0]) or 1.0)
    largest = max(abs(tick) for tick in ticks)
    if step < 1e-4 or largest >= 1e7:
        return [f"{tick:.3g}" for tick in ticks]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{tick:,.{decimals}f}" for tick in ticks]
