"""Errors of workers, to be raised where a result is awaited."""

import traceback
from typing import Any, NamedTuple, Optional, Sequence

from ..contract import place_in
from ..errors import DataError, DialogError, WorkerError


class Failure(NamedTuple):
    """Describe an error of a worker, in a form that can be sent between processes.

    text (str): Message of the error.
    path, line: File and line of a ``DataError``.
    traceback (str): Traceback of the error; "" if the user can fix the error.
    examples (Sequence[str]): Ids of the examples that the worker was working on.
    place (str): Line of the user's code that raised the error; "" if the user's code did not.
    node (str): Name of the worker's machine, if it may be another machine than this one.
    cause (Optional[BaseException]): The error itself; only in the process that raised it.
    """

    text: str
    path: Optional[str] = None
    line: Optional[int] = None
    traceback: str = ""
    examples: Sequence[str] = ()
    place: str = ""
    node: str = ""
    cause: Optional[BaseException] = None

    @classmethod
    def of(cls, error: BaseException, world: Any = None) -> "Failure":
        """Describe an error that was raised.

        error (BaseException): The error.
        world (Optional[World]): World in which the error was raised, for the ids of its examples.
        """
        if isinstance(error, DataError):
            return cls(str(error), error.path, error.line, cause=error)
        if isinstance(error, DialogError):
            return cls(str(error), cause=error)
        try:
            examples: Sequence[str] = [] if world is None else world.at_hand()
        except Exception:  # The world may be the cause of the error.
            examples = []
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        place = place_in(error)
        return cls(text, None, None, trace.rstrip("\n"), examples, place, cause=error)

    def error(self, worker: int) -> DialogError:
        """Return the error to raise where the result is awaited: for bad data, a ``DataError`` that
        names the worker; otherwise a ``WorkerError``.

        worker (int): Number of the worker.
        """
        if self.path is None:
            error: DialogError = WorkerError(
                worker,
                self.text,
                traceback=self.traceback,
                examples=self.examples,
                place=self.place,
            )
        else:
            error = DataError(self.path, "", self.line)
            where = f" on node {self.node}" if self.node else ""
            error.args = (f"{self.text} (read by worker {worker}{where})",)
        error.__cause__ = self.cause
        return error
