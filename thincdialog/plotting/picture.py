"""Make matplotlib's figures, and write them into files."""

import warnings
from pathlib import Path
from typing import Any, Union

from ..errors import OutputError, importing


def new_figure(width: float, height: float) -> Any:
    """Make an empty figure.

    width, height (float): Size in inches.
    RETURNS (Figure): The figure, which arranges its axes without overlaps.
    RAISES (MissingPackageError): If matplotlib is not installed.
    """
    with importing("plot", "A picture in a file"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), layout="constrained")


def with_grid(axes: Any) -> None:
    """Draw a light grid below the curves, and no frame above and to the right of them."""
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Any, path: Union[str, Path], **options: Any) -> None:
    """Write a matplotlib figure into a file; missing folders are created.

    figure (Figure): The figure.
    path (Union[str, Path]): Path of the file; its suffix determines the format, such as ".png" or
        ".svg".
    **options (Any): Arguments of ``Figure.savefig``.
    RAISES (OutputError): If the file cannot be written.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            # Characters missing from the font are drawn as boxes.
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            figure.savefig(path, dpi=150, **options)
    except OSError as error:
        raise OutputError(f"{path}  cannot be written: {error.strerror}.") from None
    except ValueError as error:  # matplotlib does not know the suffix.
        raise OutputError(f"{path}  cannot be written: {error}.") from None
