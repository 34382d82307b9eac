"""A call of a worker's method, carried out wherever the worker is."""

import traceback
from typing import Any, NamedTuple, Optional, Sequence

from ..errors import DialogError, WorkerError
from ..worlds.world_worker import WorldWorker

# What helps where the system gives no more threads or processes.
FEWER = "Set [hogwild] workers lower, or raise the limit (ulimit -a shows all)"


class Failure(NamedTuple):
    """An error that a call has raised, in words, so that it can go to another process.

    text (str): What it says.
    traceback (str): Where it came from; "" if a user can mend it.
    examples (Sequence[str]): Ids of those at hand.
    cause (Optional[BaseException]): Itself, in the same process.
    """

    text: str
    traceback: str
    examples: Sequence[str]
    cause: Optional[BaseException] = None

    def error(self, worker: int) -> WorkerError:
        """As it is raised where the answer was waited for."""
        error = WorkerError(worker, self.text, traceback=self.traceback, examples=self.examples)
        error.__cause__ = self.cause
        return error


def carry_out(worker: WorldWorker, call: str, arguments: Sequence[Any]) -> Any:
    """What a method of a worker gives, or the ``Failure`` it ends in.

    call (str): Name of the method.
    arguments (Sequence[Any]): For it.
    """
    try:
        return getattr(worker, call)(*arguments)
    except BaseException as error:  # Also KeyboardInterrupt, SystemExit: nobody else hears it.
        return failure_of(error, worker if call == "parley" else None)


def failure_of(error: BaseException, worker: Optional[WorldWorker] = None) -> Failure:
    """An error in words.

    worker (Optional[WorldWorker]): In whose parley it was raised, if in one.
    """
    if isinstance(error, DialogError):
        return Failure(str(error), "", [], error)
    try:
        examples: Sequence[str] = [] if worker is None else worker.at_hand()
    except Exception:  # What it has at hand may be what is broken.
        examples = []
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Failure(text, trace.rstrip("\n"), examples, error)
