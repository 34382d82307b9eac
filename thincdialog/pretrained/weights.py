"""Parameters of an encoder, from a file of safetensors."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Tuple

import numpy as np

from ..errors import MissingPackageError, ModelError
from ..files.plain_file import open_plain
from .families import name_in_file

Tensors = Dict[str, np.ndarray]
Shapes = Iterable[Tuple[str, Tuple[int, ...]]]
_TYPES = ("F16", "F32", "F64")


def read_tensors(path: Path, shapes: Shapes, family: str) -> Tensors:
    """Parameters as float32 arrays, by BERT's names.

    RAISES (ModelError): If some are missing, have another shape or are not finite.
    """
    found = {name: part[:].astype(np.float32) for name, part in slices(path, shapes, family)}
    for name, array in found.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}  {name} holds NaN or infinity. Download it again.")
    return found


def slices(path: Path, shapes: Shapes, family: str) -> Iterator[Tuple[str, Any]]:
    """Parameters that are there in their shapes, not read yet.

    path (Path): Of the file.
    shapes (Shapes): BERT's names, with their shapes; -1 is any number.
    family (str): Of the encoder, which has names of its own.
    RAISES (ModelError): If the file is damaged, or a parameter is missing or of another shape.
    RAISES (MissingPackageError): If safetensors is not installed.
    """
    with _opened(path) as file:
        names = set(file.keys())
        for name, shape in shapes:
            key = name_in_file(name, family, names)
            if key is None:
                raise ModelError(f"{path}  has no parameter {name}, which config.json asks for.")
            part = file.get_slice(key)
            found = tuple(part.get_shape())
            if len(found) != len(shape) or any(n not in (m, -1) for n, m in zip(shape, found)):
                text = f"{path}  {key} has the shape {found}"
                raise ModelError(f"{text}, but by config.json it is {shape}.")
            if part.get_dtype() not in _TYPES:
                text = f"{path}  {key} is of the type {part.get_dtype()}"
                raise ModelError(f"{text}. Supported: {', '.join(_TYPES)}.")
            yield name, part


def _opened(path: Path) -> Any:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingPackageError("safetensors", "pretrained", "A published encoder") from None
    with reading(path) as real:
        open_plain(real).close()
    try:
        return safe_open(real, framework="numpy")
    except (SafetensorError, OSError, ValueError) as error:
        text = " ".join(str(error)[:200].split())
        raise ModelError(f"{path}  is damaged ({text}). Download it again.") from None


@contextmanager
def reading(path: Path) -> Iterator[Path]:
    """A file's real path, because a hub's folder holds links; what it fails with is one line."""
    try:
        yield Path(os.path.realpath(path))
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror}.") from None
