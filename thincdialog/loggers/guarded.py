"""Keeps a training run alive when a logger fails: its network, its disk, its code."""

from typing import Any, Callable, Dict, Optional, TextIO, Tuple

from tqdm import tqdm

from .logger import Finalize, LogStep


def guarded(log_step: LogStep, finalize: Finalize, stderr: TextIO) -> Tuple[LogStep, Finalize]:
    """A logger that cannot end the run, from what its ``setup`` gave.

    log_step (LogStep): Any.
    finalize (Finalize): Any.
    stderr (TextIO): Where one line tells of the first failure.
    RETURNS (Tuple[LogStep, Finalize]): Pass everything on. After a failure, rows are still
        tried (a network may come back), single steps no longer.
    """
    name = getattr(log_step, "__qualname__", type(log_step).__name__).partition(".")[0]
    has_failed = False

    def attempt(function: Callable, *given: Any) -> None:
        nonlocal has_failed
        try:
            function(*given)
        except Exception as error:  # Whatever a network, a disk or a user's code comes up with.
            if not has_failed:
                has_failed = True
                _tell(name, error, stderr)

    def guarded_step(info: Optional[Dict[str, Any]]) -> None:
        if info is not None or not has_failed:
            attempt(log_step, info)

    return guarded_step, lambda: attempt(finalize)


def _tell(name: str, error: Exception, stderr: TextIO) -> None:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    try:
        # Above the progress bar, where there is one.
        tqdm.write(
            f"{name} has failed ({reason}). Training goes on; rows may be missing there.",
            file=stderr,
        )
    except (OSError, ValueError):  # stderr is gone as well.
        pass
