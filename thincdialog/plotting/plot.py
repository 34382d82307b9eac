"""Plot the curves of runs, on the terminal or in a file."""

from pathlib import Path
from typing import Optional, Sequence, Union

from ..runs.find_runs import Runs, find_runs
from .curves import make_panels
from .figure import draw_figure
from .terminal import draw_terminal


def plot(
    runs: Runs,
    *,
    metrics: Optional[Sequence[str]] = None,
    against: str = "step",
    files: Sequence[Union[str, Path]] = (),
    width: int = 80,
    colour: bool = False,
    braille: bool = True,
) -> str:
    """Plot the loss and the score of training runs, finished or not.

    runs (Runs): Output folders of runs, folders that contain such folders, or files of rows.
    metrics (Optional[Sequence[str]]): Metrics to show: "loss", a score such as "hits@1", or another
        key of a row such as "learn_rate"; None for the loss and the score.
    against (str): Key of the x axis: "step", "epoch", "examples" or "seconds".
    files (Sequence[Union[str, Path]]): Picture files to write (.png, .svg) instead of text.
    width (int): Number of columns of the text.
    colour (bool): Whether the terminal supports colours.
    braille (bool): Whether the terminal can show Braille characters.
    RETURNS (str): The curves as text for a terminal; "" with ``files``.
    RAISES (DataError): If a run, its rows or a metric cannot be found.
    RAISES (MissingPackageError): If the extra "plot" is not installed.
    """
    panels = make_panels(find_runs(runs), metrics, against)
    for path in files:
        draw_figure(panels, path, against)
    if files:
        return ""
    return draw_terminal(panels, against, width=width, colour=colour, braille=braille)
