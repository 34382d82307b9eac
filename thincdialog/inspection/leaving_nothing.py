"""Run code that must have no lasting effect: no file, no message to a server, no process. Python
raises an audit event before each of these."""

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, Optional, Tuple

# Prefixes of the audit events that have an effect outside this process.
_LEAVING = (
    "socket.connect", "socket.bind", "socket.send", "socket.getaddrinfo", "socket.gethost",
    "http.client.", "urllib.", "ftplib.", "smtplib.", "imaplib.", "poplib.", "nntplib.",
    "subprocess.", "os.system", "os.posix_spawn", "os.spawn", "os.exec", "os.fork", "pty.",
)  # fmt: skip
# Audit events that change files, with the number of leading arguments that are paths.
_CHANGING = {
    "os.mkdir": 1, "os.rmdir": 1, "os.remove": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2,
    "os.truncate": 1, "os.chmod": 1, "os.chown": 1, "os.utime": 1, "shutil.rmtree": 1,
    "shutil.move": 2, "sqlite3.connect": 1,
}  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# Folder in which files may change; None if events are not checked.
_folder: Optional[str] = None
_is_watching = False


class LeavingError(BaseException):
    """Stop code that would have a lasting effect. (This is not an ``Exception``, because code that
    catches those as failures of a disk or a network would continue and try again.)"""


@contextlib.contextmanager
def leaving_nothing() -> Iterator[Path]:
    """Work in a temporary folder in the block. No other files may change, and printed text is
    discarded.

    YIELDS (Path): The folder.
    RAISES (LeavingError): Before a file elsewhere is changed, a server is contacted or a process is
        started.
    """
    global _folder, _is_watching
    if not _is_watching:  # Python cannot remove an audit hook, so add it only once.
        sys.addaudithook(_look)
        _is_watching = True
    here, temporary, writes_no_code = os.getcwd(), tempfile.tempdir, sys.dont_write_bytecode
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        with contextlib.redirect_stderr(io.StringIO()):
            os.chdir(name)
            tempfile.tempdir, sys.dont_write_bytecode = name, True
            _folder = os.path.realpath(name)
            try:
                yield Path(name)
            finally:
                _folder = None
                tempfile.tempdir, sys.dont_write_bytecode = temporary, writes_no_code
                os.chdir(here)


def _look(event: str, given: Tuple[Any, ...]) -> None:
    if _folder is None:
        return
    if event == "open":
        path, _, flags = given
        if flags & _WRITING and not isinstance(path, int):
            _see_that_it_is_inside(path)
            parent = os.path.dirname(os.path.abspath(os.fsdecode(path)))
            if not os.path.isdir(parent):  # The folder may exist in the real working directory.
                os.makedirs(parent)
    elif event in _CHANGING:
        for path in given[: _CHANGING[event]]:
            _see_that_it_is_inside(path)
    elif event.startswith(_LEAVING):
        raise LeavingError(event)


def _see_that_it_is_inside(path: Any) -> None:
    if isinstance(path, int) or os.fsdecode(path) in (os.devnull, ":memory:"):
        return
    found = os.path.realpath(os.fsdecode(path))
    if found != _folder and not found.startswith(os.path.join(str(_folder), "")):
        raise LeavingError(found)
