"""Several loggers at once."""

from contextlib import ExitStack
from typing import Any, Dict, List, Optional, TextIO, Tuple

from ..errors import ConfigError, Problem
from ..registry import registry
from .guarded import guarded
from .logger import Finalize, LoggedRun, LogStep, Setup


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

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        steps: List[LogStep] = []
        with ExitStack() as undo:
            for create in loggers:
                one_step, one_end = guarded(*_pair(create(run, stdout, stderr)), stderr)
                steps.append(one_step)
                undo.callback(one_end)
            # Ends all of them, even if one fails; in reverse order.
            finalize = undo.pop_all().close

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            for one_step in steps:
                one_step(info)

        return log_step, finalize

    return setup


def _pair(given: Any) -> Tuple[LogStep, Finalize]:
    if isinstance(given, tuple) and len(given) == 2 and all(map(callable, given)):
        return given
    text = f"[training.logger] a logger's setup gave {given!r}, not the pair (log_step, finalize)"
    raise ConfigError(
        [Problem("", text, "return two functions, as thincdialog.loggers.logger says")]
    )
