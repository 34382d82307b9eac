"""An error of a worker, told where its work is waited for."""

import traceback
from typing import Any, NamedTuple, Optional, Sequence

from ..contract import place_in
from ..errors import DataError, DialogError, WorkerError


class Failure(NamedTuple):
    """An error that was raised, in words that can come from another process.

    text (str): What it says.
    path, line: Of a ``DataError``.
    traceback (str): Where it came from; "" if a user can mend it.
    examples (Sequence[str]): Ids of those at hand.
    place (str): The line of a user's code that it came from, if it did.
    node (str): The machine that it was on, if that may be another one.
    cause (Optional[BaseException]): Itself, in the same process.
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
        """An error that was raised, in a world's parley or somewhere else."""
        if isinstance(error, DataError):
            return cls(str(error), error.path, error.line, cause=error)
        if isinstance(error, DialogError):
            return cls(str(error), cause=error)
        try:
            examples: Sequence[str] = [] if world is None else world.at_hand()
        except Exception:  # What it has at hand may be what is broken.
            examples = []
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        place = place_in(error)
        return cls(text, None, None, trace.rstrip("\n"), examples, place, cause=error)

    def error(self, worker: int) -> DialogError:
        """As it is raised where the work is waited for: what is wrong with data says so as ever,
        and who read it."""
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
