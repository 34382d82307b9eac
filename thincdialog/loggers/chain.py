"""Several loggers at once."""

from contextlib import ExitStack
from typing import Any, Dict, List, Optional, Sequence, TextIO

from ..registry import registry
from .guarded import guarded
from .logger import Logger, Progress, Setup, Start


@registry.loggers("thincdialog.Chain.v1")
def Chain(*loggers: Setup) -> Setup:
    """Tells every logger everything, in the order of the config; one that fails in the
    middle of training leaves the others as they are:

        [training.logger]
        @loggers = "thincdialog.Chain.v1"

        [training.logger.*.table]
        @loggers = "thincdialog.Console.v1"

        [training.logger.*.file]
        @loggers = "thincdialog.JSONL.v1"
        path = "output/log.jsonl"

    loggers (Setup): The loggers.
    """

    def setup(stdout: TextIO, stderr: TextIO, total_steps: Optional[float]) -> Logger:
        ready: List[Logger] = []
        with ExitStack() as undo:
            for create in loggers:
                ready.append(guarded(create(stdout, stderr, total_steps), stderr))
                undo.callback(ready[-1].finish)
            undo.pop_all()
        return ChainLogger(ready)

    return setup


class ChainLogger(Logger):
    """See ``Chain``.

    loggers (Sequence[Logger]): The loggers.
    """

    def __init__(self, loggers: Sequence[Logger]):
        self.loggers = list(loggers)

    def start(self, start: Start) -> None:
        """Pass it on."""
        for logger in self.loggers:
            logger.start(start)

    def step(self, progress: Progress) -> None:
        """Pass it on."""
        for logger in self.loggers:
            logger.step(progress)

    def row(self, info: Dict[str, Any]) -> None:
        """Pass it on."""
        for logger in self.loggers:
            logger.row(info)

    def failed(self, error: BaseException) -> None:
        """Pass it on."""
        for logger in self.loggers:
            logger.failed(error)

    def finish(self) -> None:
        """Finish all of them, even if one fails."""
        with ExitStack() as stack:
            for logger in reversed(self.loggers):
                stack.callback(logger.finish)
