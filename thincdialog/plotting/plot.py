"""Curves of runs, on the terminal or in a file."""

from pathlib import Path
from typing import Optional, Sequence, Union

from ..runs.find_runs import find_runs
from .curves import make_panels
from .figure import draw_figure
from .terminal import draw_terminal


def plot(
    runs: Sequence[Union[str, Path]],
    *,
    metrics: Optional[Sequence[str]] = None,
    against: str = "step",
    files: Sequence[Union[str, Path]] = (),
    width: int = 80,
    colour: bool = False,
    braille: bool = True,
) -> str:
    """Curves of the loss and of the score of training runs, finished or not.

    runs (Sequence[Union[str, Path]]): Folders of runs, folders of such, or files of rows.
    metrics (Optional[Sequence[str]]): What to show: "loss", a score such as "hits@1", or
        what else a row has, such as "learn_rate"; None for the loss and the score.
    against (str): What to lay it over: "step", "epoch", "examples" or "seconds".
    files (Sequence[Union[str, Path]]): Pictures to write (.png, .svg); then no text is made.
    width (int): Columns of the text.
    colour (bool): Whether the terminal shows colours.
    braille (bool): Whether the terminal shows Braille.
    RETURNS (str): The curves as text for a terminal; empty with ``files``.
    RAISES (DataError): If there is no such run, no row, or no such metric.
    RAISES (MissingPackageError): If the extra "plot" is not installed.
    """
    panels = make_panels(find_runs(runs), metrics, against)
    for path in files:
        draw_figure(panels, path, against)
    if files:
        return ""
    return draw_terminal(panels, against, width=width, colour=colour, braille=braille)
