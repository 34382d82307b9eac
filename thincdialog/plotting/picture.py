"""Import the packages for drawing, and write pictures into files."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Union

from ..errors import MissingPackageError, OutputError


def drawing(module: str, what: str) -> Any:
    """Import a module for drawing.

    module (str): Name of the module.
    what (str): Name of the picture, for the error message.
    RAISES (MissingPackageError): If the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackageError(module.partition(".")[0], "plot", what) from None


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
