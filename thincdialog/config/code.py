"""Imports a user's Python file, so that what it registers can stand in a config."""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Dict, Optional, Union

from ..contract import CODE_PREFIX, CodeError
from ..errors import DialogError

_IMPORTED: Dict[Path, ModuleType] = {}


def load_code(path: Optional[Union[str, Path]]) -> Optional[ModuleType]:
    """Import one Python file, once in a process.

    path (Optional[Union[str, Path]]): The file; None does nothing.
    RETURNS (Optional[ModuleType]): The module.
    RAISES (CodeError): If there is no such file, or importing it fails; names the line.
    """
    if path is None:
        return None
    file = Path(path).resolve()
    if file in _IMPORTED:
        return _IMPORTED[file]
    if not file.is_file():
        raise CodeError(f"{path}  there is no such Python file; check the path given with --code")
    name = f"{CODE_PREFIX}{file.stem}_{len(_IMPORTED)}"
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
        reason = " ".join(str(error).split()) if not isinstance(error, SyntaxError) else error.msg
        text = f"cannot be imported: {type(error).__name__}: {reason}"
        raise CodeError(f"{path}:{_line_of(error, file)}  {text}") from error
    _IMPORTED[file] = module
    return module


def _line_of(error: BaseException, file: Path) -> int:
    if isinstance(error, SyntaxError) and error.lineno and error.filename == str(file):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename == str(file) and f.lineno), 1)
