"""Import a user's Python files, so that a config can use the functions that they register."""

import importlib.util
import sys
import traceback
import zlib
from pathlib import Path
from types import ModuleType
from typing import Dict, List, Sequence, Union

from ..contract import CODE_PREFIX, CodeError, error_line
from ..errors import DialogError
from ..files.plain_file import real_path

PathLike = Union[str, Path]
CodeLike = Union[PathLike, Sequence[PathLike], None]

_IMPORTED: Dict[Path, ModuleType] = {}


def code_files(code: CodeLike) -> List[str]:
    """Return the paths of code files as strings, in the order in which they are imported.

    code (CodeLike): One path, several paths, or None.
    """
    files = [code] if isinstance(code, (str, Path)) else code or ()
    return [str(file) for file in files]


def distinct_names(files: Sequence[str]) -> List[str]:
    """Return the names of files, with as many parent folders as needed to distinguish them.

    files (Sequence[str]): Paths of the files; duplicates count once.
    """
    paths = list(dict.fromkeys(real_path(file) for file in files))
    n_parts = 1
    while len({path.parts[-n_parts:] for path in paths}) < len(paths):
        n_parts += 1
    names = [path.name for path in paths]
    return [
        Path(*path.parts[-n_parts:]).as_posix() if names.count(path.name) > 1 else path.name
        for path in paths
    ]


def load_code(code: CodeLike) -> List[ModuleType]:
    """Import Python files, each once in a process.

    code (CodeLike): One path, several paths in their order, or None.
    RETURNS (List[ModuleType]): The modules.
    RAISES (CodeError): If a file does not exist, or importing it fails; the error names the line.
    """
    return [_load_file(path) for path in code_files(code)]


def _load_file(path: str) -> ModuleType:
    """Import a Python file, unless this process has already imported it."""
    file = real_path(path)
    if file in _IMPORTED:
        return _IMPORTED[file]
    if not file.is_file():
        raise CodeError(f"{path}  there is no such Python file; check the path given with --code")
    # The name is the same in every process, so that pickled objects can be loaded in other
    # processes.
    name = f"{CODE_PREFIX}{file.stem}_{zlib.crc32(str(file).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CodeError(f"{path}  is not a Python file; its name should end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, DialogError):
            raise
        kind = type(error).__name__
        reason = f"{kind}: {error.msg}" if isinstance(error, SyntaxError) else error_line(error)
        text = f"{path}:{_line_of(error, file)}  cannot be imported: {reason}"
        raise CodeError(text) from error
    _IMPORTED[file] = module
    return module


def _line_of(error: BaseException, file: Path) -> int:
    if isinstance(error, SyntaxError) and error.lineno and error.filename == str(file):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename == str(file) and f.lineno), 1)
