"""Run several loggers at once, and keep their failures (network, disk, code) from ending a run."""

from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TextIO, Tuple

from tqdm import tqdm

from ..contract import CodeError, Returned, called, code_error_line, error_line, has_run, watching
from ..registry import registry
from .logger import Finalize, Log, LoggedRun, LogStep, Progress, Setup


def _is_pair(value: Any, *given: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(callable, value))


# Return value of ``log_step`` and ``finalize``.
DONE = Returned("nothing, and not yield", has_run)
# Return value of ``setup``.
PAIR = Returned("the pair (log_step, finalize), as thincdialog.loggers.logger says", _is_pair)
watch = watching(DONE)


@registry.loggers("thincdialog.Chain.v1")
def Chain(*loggers: Setup) -> Setup:
    """Pass each row to several loggers, in the order of the config. A logger that fails during
    training does not affect the others:

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
                step, end = called(create, PAIR, run, stdout, stderr)
                one_step, one_end = _guarded(watch(step, create), watch(end, create), stderr)
                steps.append(one_step)
                undo.callback(one_end)
            # This ends all loggers, even if one fails, in reverse order.
            finalize = undo.pop_all().close

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            for one_step in steps:
                one_step(info)

        return log_step, finalize

    return setup


@contextmanager
def run_loggers(
    setups: Sequence[Setup], run: LoggedRun, stdout: TextIO, stderr: TextIO
) -> Iterator[Log]:
    """Combine the loggers of a run into one function.

    setups (Sequence[Setup]): The loggers.
    run (LoggedRun): The run.
    stdout (TextIO): Stream for results.
    stderr (TextIO): Stream for progress.
    YIELDS (Log): Function to call after each training step, and at an evaluation before the
        first step.
    """
    log_step, finalize = Chain(*setups)(run, stdout, stderr)

    def log_progress(progress: Callable[[], Progress], info: Optional[Dict[str, Any]]) -> None:
        run.progress_now = progress
        log_step(info)

    try:
        yield log_progress
    except BaseException as error:
        run.error = error
        raise
    finally:
        finalize()


def _guarded(log_step: LogStep, finalize: Finalize, stderr: TextIO) -> Tuple[LogStep, Finalize]:
    """Wrap a logger so that its errors do not end the run. Its first error prints a line on stderr.
    After that, the logger still gets rows (a network may come back), but no single steps."""
    name = getattr(log_step, "__qualname__", type(log_step).__name__).partition(".")[0]
    has_failed = False

    def attempt(function: Callable, *given: Any) -> None:
        nonlocal has_failed
        try:
            function(*given)
        except Exception as error:  # From a network, a disk or custom code.
            if has_failed:
                return
            has_failed = True
            reason = str(error) if isinstance(error, CodeError) else code_error_line(error)
            reason = (reason or error_line(error))[:200]
            line = f"{name} has failed ({reason}). Training continues; rows may be missing there."
            with suppress(OSError, ValueError):  # stderr may be gone as well.
                tqdm.write(line, file=stderr)  # Print above the progress bar, if there is one.

    def guarded_step(info: Optional[Dict[str, Any]]) -> None:
        if info is not None or not has_failed:
            attempt(log_step, info)

    return guarded_step, lambda: attempt(finalize)
