"""Read the parameters of an encoder from a file of safetensors."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Tuple

import numpy as np

from ..errors import DialogError, ModelError, importing
from ..files.plain_file import open_plain
from .families import name_of_bert

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


def find_tensors(path: Path, shapes: Shapes) -> Iterator[Tuple[str, Any]]:
    """Check the names, shapes and types of parameters, and yield each without reading it.

    path (Path): Path of the file.
    shapes (Shapes): BERT's name and the expected shape of each parameter; -1 means any size.
    RETURNS (Iterator[Tuple[str, Any]]): BERT's name of each parameter, and a slice that reads it.
    RAISES (ModelError): If the file is damaged, a parameter is missing or has another shape or an
        unsupported type, or the file has parameters of layers that are not in ``shapes``.
    RAISES (MissingPackageError): If safetensors is not installed.
    """
    with importing("pretrained", "A published encoder"):
        from safetensors import safe_open
    with reading(path) as real:
        open_plain(real).close()
        file: Any = safe_open(real, framework="numpy")
    # BERT's name of each parameter to its name in the file.
    keys = {name_of_bert(key): key for key in file.keys()}
    for name, shape in shapes:
        key = keys.pop(name, "")
        part: Any = file.get_slice(key) if key else None
        sizes = part.get_shape() if part else ()
        is_right = len(sizes) == len(shape) and all(n in (m, -1) for n, m in zip(shape, sizes))
        if not is_right or part.get_dtype() not in ("F16", "F32", "F64"):
            text = f"{path}  has no parameter {key or name} of the shape {shape} and type F16"
            raise ModelError(f"{text}, F32 or F64, which config.json asks for.")
        yield name, part
    if more := [key for name, key in keys.items() if name.startswith("encoder.layer.")]:
        text = f"{path}  has the parameter {more[0]}, which config.json does not ask for"
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
