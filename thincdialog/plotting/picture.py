"""Finds the packages that draw, and writes pictures into files."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Union

from ..errors import MissingPackageError, OutputError


def drawing(module: str, what: str) -> Any:
    """A module of a package that draws.

    what (str): What it draws, for the error.
    RAISES (MissingPackageError): If the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackageError(module.partition(".")[0], "plot", what) from None


def save_figure(figure: Any, path: Union[str, Path], **options: Any) -> None:
    """Write a figure of matplotlib's into a file; folders that are missing are made.

    path (Union[str, Path]): Its ending says what is written, ".png" or ".svg" for instance.
    **options (Any): As for ``Figure.savefig``.
    RAISES (OutputError): If the file cannot be written.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            # It draws boxes, as every program does.
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            figure.savefig(path, dpi=150, **options)
    except OSError as error:
        raise OutputError(f"{path}  cannot be written: {error.strerror}.") from None
    except ValueError as error:  # An ending that matplotlib does not know.
        raise OutputError(f"{path}  cannot be written: {error}.") from None
