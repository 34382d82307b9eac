"""Read rows of Arrow and Parquet files, and of folders that the library datasets has saved."""

import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Union

import numpy as np

from ..errors import DataError, importing
from ..files.json_text import parse_json
from ..files.plain_file import read_plain
from .packed import DATA_SUFFIXES, MAX_TIMES, is_data, most_unpacked
from .wording import short

SUFFIXES = (".parquet", ".arrow", ".feather")
# Rows that are read at a time. Few, because a file may store a text once for many rows.
N_ROWS = 128


def read_arrow(path: Union[str, Path], as_json: bool = False) -> Iterator[Dict[str, Any]]:
    """Yield every row as a dict of column names and values. Lists of numbers become arrays of
    float32 or int64. A class number becomes the class name, if the file has class names.

    path (Union[str, Path]): A .parquet, .arrow or .feather file; or the folder of a data set
        saved with ``save_to_disk``, which holds such files.
    as_json (bool): Whether to convert all values to JSON types: lists stay lists, and dates become
        strings.
    RAISES (DataError): If the file cannot be read.
    RAISES (MissingPackageError): If pyarrow is not installed.
    """
    with importing("arrow", f"reading {path}"):
        import pyarrow
    for file in _files(Path(path)):
        try:
            for batch in _batches(file):
                _check(batch, file)
                yield from _rows(batch, _class_names(batch.schema), as_json)
        # Column names that are not UTF-8 raise a UnicodeDecodeError.
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            text = f"cannot be read as {file.suffix[1:]}: {short(str(error), 200)}"
            raise DataError(file, text) from None


def _check(batch: Any, file: Path) -> None:
    """Check that all offsets in a batch are within it, because Arrow follows them unchecked."""
    batch.validate(full=True)
    if batch.nbytes > most_unpacked(os.stat(file).st_size):
        text = f"{batch.num_rows:,} rows unpack to more than {MAX_TIMES} times the file's size"
        raise DataError(file, f"{text}: this does not look like real data")


def _files(path: Path) -> List[Path]:
    """Return the data files of a path: the file itself, or the files of a saved data set in their
    order."""
    if not path.exists():
        raise DataError(path, "not found")
    if not path.is_dir():
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(path, f"has an unknown suffix: expected {', '.join(SUFFIXES)}")
        return [path]
    state = path / "state.json"
    if state.is_file():  # This file lists the data files in their order.
        try:
            names = [entry["filename"] for entry in parse_json(read_plain(state))["_data_files"]]
            are_inside = all(Path(name).name == name != ".." for name in names)
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DataError(state, f"is not a list of files ({error})") from None
        if not are_inside:
            raise DataError(state, "names files outside its folder")
        return [path / name for name in names]
    files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
    if files:
        return files
    inside = sorted(each.name for each in path.iterdir() if (each / "state.json").is_file())
    if inside:
        raise DataError(
            path, f"holds several splits: give the path of one, such as {path / inside[0]}"
        )
    known = SUFFIXES if any(is_data(each.name) for each in path.iterdir()) else DATA_SUFFIXES
    raise DataError(path, f"holds no file that ends in {', '.join(known)}")


def _batches(file: Path) -> Iterator[Any]:
    """Yield the rows of a file in small batches."""
    if file.exists() and not file.is_file():
        raise DataError(file, "is not a plain file: give a file, or the folder of a data set")
    if file.suffix.lower() == ".parquet":
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
        except pyarrow.ArrowInvalid:  # The library datasets writes streams.
            source.seek(0)
            batches = iter(ipc.open_stream(source))
        for batch in batches:
            for start in range(0, batch.num_rows, N_ROWS):
                yield batch.slice(start, N_ROWS)


def _rows(batch: Any, names: Dict[str, List[str]], as_json: bool) -> Iterator[Dict[str, Any]]:
    columns = {}
    for field, column in zip(batch.schema, batch.columns):
        values = _values(column)
        kind = _number_type(field.type)
        if as_json:
            values = list(map(_as_json, values))
        elif kind:
            values = [_as_array(value, kind) for value in values]
        if field.name in names:
            values = [_named(value, names[field.name]) for value in values]
        columns[field.name] = values
    for row in range(batch.num_rows):
        yield {name: values[row] for name, values in columns.items()}


def _values(column: Any) -> List[Any]:
    """Return the values of a column. A value that is stored once for many rows is one object."""
    from pyarrow import DictionaryArray

    if not isinstance(column, DictionaryArray):
        return column.to_pylist()
    values = column.dictionary.to_pylist()
    return [None if place is None else values[place] for place in column.indices.to_pylist()]


def _as_array(value: Any, kind: str) -> Any:
    """Return numbers as an array, or unchanged if they do not fit or rows differ in length."""
    try:
        return None if value is None else np.array(value, dtype=kind)
    except (ValueError, TypeError, OverflowError):
        return value


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    is_json = value is None or isinstance(value, (str, int, float))
    return value if is_json else str(value)


def _named(value: Any, names: List[str]) -> Any:
    is_known = isinstance(value, int) and 0 <= value < len(names)
    return names[value] if is_known else value


def _number_type(kind: Any) -> str:
    """Return the dtype for a (nested) list of numbers, "f" or "int64"; "" for any other type."""
    import pyarrow.types as types

    depth = 0
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind, depth = kind.value_type, depth + 1
    if not depth:
        return ""
    return "f" if types.is_floating(kind) else "int64" if types.is_integer(kind) else ""


def _class_names(schema: Any) -> Dict[str, List[str]]:
    """Return the class names that the library datasets keeps in the schema, by column."""
    try:
        info = parse_json((schema.metadata or {})[b"huggingface"])
        features = info["info"]["features"].items()
        named = {name: each["names"] for name, each in features if "names" in each}
        return {name: list(map(str, texts)) for name, texts in named.items()}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def is_arrow(path: Union[str, Path]) -> bool:
    """Return whether a file has a suffix of Arrow or Parquet, or the path is a folder."""
    return Path(path).suffix.lower() in SUFFIXES or Path(path).is_dir()
