"""Keeps a training run alive when a logger fails: its network, its disk, its code."""

from typing import Any, Callable, Dict, TextIO

from tqdm import tqdm

from .logger import Logger, Progress, Start


def guarded(logger: Logger, stderr: TextIO) -> Logger:
    """A logger that cannot end the run, except before it has begun.

    logger (Logger): Any.
    stderr (TextIO): Where one line tells of the first failure.
    RETURNS (Logger): Passes everything on. After a failure, rows are still tried (a network
        may come back), single steps no longer.
    """
    return logger if isinstance(logger, GuardedLogger) else GuardedLogger(logger, stderr)


class GuardedLogger(Logger):
    """See ``guarded``.

    logger (Logger): Any.
    stderr (TextIO): Where the line goes.
    """

    def __init__(self, logger: Logger, stderr: TextIO):
        self.logger, self.stderr = logger, stderr
        self.has_failed = False

    def start(self, start: Start) -> None:
        """Pass it on: what fails here is better mended before hours of training."""
        self.logger.start(start)

    def step(self, progress: Progress) -> None:
        """Pass it on, until something has failed."""
        if not self.has_failed:
            self._try(self.logger.step, progress)

    def row(self, info: Dict[str, Any]) -> None:
        """Pass it on."""
        self._try(self.logger.row, info)

    def failed(self, error: BaseException) -> None:
        """Pass it on."""
        self._try(self.logger.failed, error)

    def finish(self) -> None:
        """Pass it on."""
        self._try(self.logger.finish)

    def _try(self, method: Callable, *given: Any) -> None:
        try:
            method(*given)
        except Exception as error:  # Whatever a network, a disk or a user's code comes up with.
            if not self.has_failed:
                self.has_failed = True
                self._tell(error)

    def _tell(self, error: Exception) -> None:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        name = type(self.logger).__name__
        try:
            # Above the progress bar, where there is one.
            tqdm.write(
                f"{name} has failed ({reason}). Training goes on; rows may be missing there.",
                file=self.stderr,
            )
        except (OSError, ValueError):  # stderr is gone as well.
            pass
