"""Import the packages for drawing, and write pictures into files."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Union

from ..errors import MissingPackageError, OutputError


def drawing(module: str, what: str) -> Any:
    """Import a module for drawing.

    what (str): Name of the picture, for the error message.
    RAISES (MissingPackageError): If the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackageError(module.partition(".")[0], "plot", what) from None


def save_figure(figure: Any, path: Union[str, Path], **options: Any) -> None:
    """Write a figure of matplotlib into a file; missing folders are created.

    path (Union[str, Path]): The file; its suffix gives the format, such as ".png" or ".svg".
    **options (Any): As for ``Figure.savefig``.
    RAISES (OutputError): If the file cannot be written.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            # Characters that the font lacks are drawn as boxes.
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            figure.savefig(path, dpi=150, **options)
    except OSError as error:
        raise OutputError(f"{path}  cannot be written: {error.strerror}.") from None
    except ValueError as error:  # A suffix that matplotlib does not know.
        raise OutputError(f"{path}  cannot be written: {error}.") from None
