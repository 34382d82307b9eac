"""Read the parameters of an encoder from a file of safetensors."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Tuple

import numpy as np

from ..errors import DialogError, MissingPackageError, ModelError
from ..files.plain_file import open_plain
from .families import LARGEST, check_known, name_of_bert

Shapes = Iterable[Tuple[str, Tuple[int, ...]]]


def read_tensors(path: Path, shapes: Shapes) -> Dict[str, np.ndarray]:
    """Read parameters as float32 arrays, by BERT's names. Arguments and errors are those of
    ``find_tensors``.

    RAISES (ModelError): Also if a number is not finite.
    """
    found = {name: part[:].astype(np.float32) for name, part in find_tensors(path, shapes)}
    for name, array in found.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}  {name} holds NaN or infinity. Download it again.")
    return found


def find_tensors(path: Path, shapes: Shapes, depth: int = LARGEST) -> Iterator[Tuple[str, Any]]:
    """Check the names, shapes and types of parameters, and yield each without reading it.

    path (Path): Path of the file.
    shapes (Shapes): BERT's name and the expected shape of each parameter; -1 means any size.
    depth (int): Largest number of layers in the file.
    RETURNS (Iterator[Tuple[str, Any]]): BERT's name of each parameter, and a slice that reads it.
    RAISES (ModelError): If the file is damaged or has more layers, or a parameter is missing or has
        another shape or an unsupported type.
    RAISES (MissingPackageError): If safetensors is not installed.
    """
    try:
        from safetensors import safe_open
    except ImportError:
        raise MissingPackageError("safetensors", "pretrained", "A published encoder") from None
    with reading(path) as real:
        open_plain(real).close()
        file: Any = safe_open(real, framework="numpy")
    # BERT's name of each parameter to its name in the file.
    keys = {name_of_bert(key): key for key in file.keys()}
    for name, shape in shapes:
        if name not in keys:
            raise ModelError(f"{path}  has no parameter {name}, which config.json asks for.")
        part = file.get_slice(keys[name])
        found = tuple(part.get_shape())
        if len(found) != len(shape) or any(n not in (m, -1) for n, m in zip(shape, found)):
            text = f"{path}  {keys[name]} has the shape {found}"
            raise ModelError(f"{text}, but by config.json it is {shape}.")
        check_known(path, f"the type of {keys[name]}", part.get_dtype(), ("F16", "F32", "F64"))
        yield name, part
    if any(name.startswith(f"encoder.layer.{depth}.") for name in keys):
        text = f"{path}  has more layers than config.json says ({depth})"
        raise ModelError(f"{text}. Download both again.")


@contextmanager
def reading(path: Path) -> Iterator[Path]:
    """Turn every error while a file is read into an error of one line for the user.

    YIELDS (Path): Real path of the file, because folders from a hub contain links.
    RAISES (ModelError): If the file cannot be read, or is damaged.
    """
    try:
        yield Path(os.path.realpath(path))
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror}.") from None
    except DialogError:
        raise
    except Exception as error:  # The library tokenizers raises plain Exceptions.
        reason = " ".join(str(error)[:200].split())
        raise ModelError(f"{path}  is damaged ({reason}). Download it again.") from None
