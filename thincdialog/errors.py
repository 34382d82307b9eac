"""Errors that users of the command line or of the Python API can see.

Every message names the mistake, shows the value, and suggests a remedy. The
command line prints them in one block and exits with ``exit_code``; anything
that is not a ``DialogError`` is a defect of thincdialog and shows a traceback.
"""

import difflib
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple


class DialogError(Exception):
    """Base of all errors that a user can cause and fix."""

    exit_code = 1

    def __reduce__(self) -> Tuple[Any, ...]:
        # Processes send errors. Exception would unpickle them with the text as the first argument.
        return type(self).__new__, (type(self), *self.args), vars(self)


# Maximum number of characters of a problem's text to show; only texts with very long names have
# more.
MAX_CHARACTERS = 1000
# Maximum length of a name for which similar names are searched, because this takes long.
MAX_COMPARED = 200


def cut(text: str, limit: int = MAX_CHARACTERS) -> str:
    """Cut a long text in its middle."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]} ... {text[-half:]}"


def closest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that is most similar to an unknown one, apart from case; "" if none is
    similar.

    cutoff (float): Smallest similarity, 0.0 to 1.0.
    """
    known = {other.casefold(): other for other in names if len(other) <= MAX_COMPARED >= len(name)}
    found = difflib.get_close_matches(name.casefold(), known, 1, cutoff)
    return known[found[0]] if found else ""


class Problem(NamedTuple):
    """Describe one problem in a config.

    where (str): ``config.cfg:41``, or ``--training.max_steps`` for an override.
    text (str): The mistake, with section, key and value.
    hint (str): How to fix it, or "" if the text is enough.
    """

    where: str
    text: str
    hint: str = ""

    @property
    def line(self) -> Optional[int]:
        """The line of ``where``; None if it is no line of a file."""
        _, colon, number = self.where.rpartition(":")
        return int(number) if colon and number.isdigit() else None

    def __str__(self) -> str:
        text = cut(self.text)
        line = f"{self.where}  {text}" if self.where else text
        return f"{line} - {self.hint}" if self.hint else line


# Maximum number of problems that an error lists; a file that is not a config has one in every line.
MAX_LISTED = 25


class ConfigError(DialogError):
    """Report all problems of a config: ``problems`` holds all of them, the text the
    first ``MAX_LISTED``."""

    def __init__(self, problems: Sequence[Problem], path: str = "config"):
        self.problems: List[Problem] = list(problems)
        self.path = path
        n = len(self.problems)
        head = f"{n} problem{'' if n == 1 else 's'} in {path}"
        lines = [head, *map(str, self.problems[:MAX_LISTED])]
        if n > MAX_LISTED:
            lines.append(f"... and {n - MAX_LISTED} more")
        super().__init__("\n  ".join(lines))


class DataError(DialogError):
    """A data file has a mistake or cannot be read.

    path (str): Path of the file; for data without a file, the name of the task.
    text (str): Description of the mistake, with the value and the expected value.
    line (Optional[int]): Line number, from 1.
    """

    def __init__(self, path: object, text: str, line: Optional[int] = None):
        self.path = str(path)
        self.line = line
        where = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{where}  {cut(text)}")


class ModelError(DialogError):
    """A saved model is incomplete, damaged, or was not saved by this package."""


class OutputError(DialogError):
    """An output folder or file cannot be written or must not be overwritten."""


class TrainingError(DialogError):
    """Training cannot continue, for instance because the loss is not finite."""


class NothingToLearnError(TrainingError):
    """The loss does not depend on the weights."""


class DeviceMemoryError(DialogError):
    """A batch or the weights do not fit into the memory of a GPU."""


class WorkerError(DialogError):
    """One of several workers has failed, and so has their common task.

    worker (int): Number of the worker, from 0.
    text (str): Description of the failure; the text of the error, if a user can fix it.
    traceback (str): Traceback in the worker; "" if a user can fix the error, or if the worker died.
    examples (Sequence[str]): Ids of the examples that the worker was processing.
    place (str): The line of a user's code that raised the error, if any.
    brief (str): The message; if ``place`` is given, with the place and without the traceback.
    """

    def __init__(
        self,
        worker: int,
        text: str,
        *,
        traceback: str = "",
        examples: Sequence[str] = (),
        place: str = "",
    ):
        self.worker = worker
        self.traceback = traceback
        self.examples: List[str] = list(examples)
        lines = [f"Worker {worker}: {text}"]
        if self.examples:
            shown = ", ".join(self.examples[:MAX_LISTED])
            more = len(self.examples) - MAX_LISTED
            lines.append(f"Examples in progress: {shown}" + (f", ... and {more} more" * (more > 0)))
        whole = "\n".join([*lines, traceback] if traceback else lines)
        self.brief = whole
        if place:
            self.brief = "\n".join([f"Worker {worker}: {place}: {text}", *lines[1:]])
        super().__init__(whole)


class MissingPackageError(DialogError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, need: str):
        super().__init__(
            f"{need} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'thincdialog[{extra}]'"
        )


@contextmanager
def importing(extra: str, need: str) -> Iterator[None]:
    """Import optional packages in the block; arguments as for ``MissingPackageError``.

    RAISES (MissingPackageError): If a package is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise MissingPackageError(str(error.name or error), extra, need) from None


class ProtocolError(RuntimeError):
    """An agent or world was called out of turn (a defect of the caller)."""


class PlanError(ProtocolError, DialogError):
    """A batcher's plan does not contain every row exactly once."""
