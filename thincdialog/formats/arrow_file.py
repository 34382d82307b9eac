"""Rows of Arrow and Parquet files, and of folders that the library datasets has saved."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Union

import numpy as np

from ..errors import DataError, MissingPackageError
from .wording import short

SUFFIXES = (".parquet", ".arrow", ".feather")
# Rows that are taken out of a file together.
N_ROWS = 1024


def read_arrow(path: Union[str, Path]) -> Iterator[Dict[str, Any]]:
    """Every row, as names with values. Lists of numbers become arrays, float32 or int64; a class
    number that the file has a name for becomes the name.

    path (Union[str, Path]): A .parquet, .arrow or .feather file; or the folder of a data set
        saved with ``save_to_disk``, which holds such files.
    RAISES (DataError): If it cannot be read.
    RAISES (MissingPackageError): If pyarrow is not installed.
    """
    try:
        import pyarrow
    except ImportError:
        raise MissingPackageError("pyarrow", "arrow", f"reading {path}") from None
    for file in _files(Path(path)):
        try:
            for batch in _batches(file):
                names = _class_names(batch.schema)
                yield from _rows(batch, names)
        except (pyarrow.ArrowException, OSError) as error:
            text = f"cannot be read as {file.suffix[1:]}: {short(str(error), 200)}"
            raise DataError(file, text) from None


def _files(path: Path) -> List[Path]:
    if not path.exists():
        raise DataError(path, "not found")
    if not path.is_dir():
        if path.suffix not in SUFFIXES:
            raise DataError(path, f"ends in none of {', '.join(SUFFIXES)}")
        return [path]
    state = path / "state.json"
    if state.is_file():  # It says which files, and in which order.
        try:
            names = [entry["filename"] for entry in json.loads(state.read_text())["_data_files"]]
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DataError(state, f"is no list of files ({error})") from None
        if any(Path(name).name != name for name in names):
            raise DataError(state, "names files outside of its folder")
        return [path / name for name in names]
    files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
    if files:
        return files
    inside = sorted(each.name for each in path.iterdir() if (each / "state.json").is_file())
    if inside:
        raise DataError(path, f"holds several splits: give one, such as {path / inside[0]}")
    raise DataError(path, f"holds no file that ends in {', '.join(SUFFIXES)}")


def _batches(file: Path) -> Iterator[Any]:
    if file.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(file) as parquet:
            yield from parquet.iter_batches(N_ROWS)
        return
    import pyarrow
    from pyarrow import ipc

    with pyarrow.memory_map(str(file)) as source:
        try:
            reader = ipc.open_file(source)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        except pyarrow.ArrowInvalid:  # What datasets writes is a stream.
            source.seek(0)
            batches = iter(ipc.open_stream(source))
        for batch in batches:
            for start in range(0, batch.num_rows, N_ROWS):
                yield batch.slice(start, N_ROWS)


def _rows(batch: Any, names: Dict[str, List[str]]) -> Iterator[Dict[str, Any]]:
    columns = {}
    for field, column in zip(batch.schema, batch.columns):
        values = column.to_pylist()
        kind = _numbers_in(field.type)
        if kind:
            values = [None if value is None else np.array(value, dtype=kind) for value in values]
        elif field.name in names:
            values = [_named(value, names[field.name]) for value in values]
        columns[field.name] = values
    for row in range(batch.num_rows):
        yield {name: values[row] for name, values in columns.items() if values[row] is not None}


def _named(value: Any, names: List[str]) -> Any:
    is_known = isinstance(value, int) and 0 <= value < len(names)
    return names[value] if is_known else value


def _numbers_in(kind: Any) -> str:
    """ "f" or "int64" for lists of numbers, or of such lists; "" for anything else."""
    import pyarrow.types as types

    depth = 0
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind, depth = kind.value_type, depth + 1
    if not depth:
        return ""
    return "f" if types.is_floating(kind) else "int64" if types.is_integer(kind) else ""


def _class_names(schema: Any) -> Dict[str, List[str]]:
    """Names of classes that the library datasets keeps in the schema, by column."""
    try:
        info = json.loads((schema.metadata or {})[b"huggingface"])
        features = info["info"]["features"].items()
        return {name: each["names"] for name, each in features if "names" in each}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}
