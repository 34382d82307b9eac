"""Register teachers of files, which share most of their arguments, and read files with them."""

import copy
import inspect
from dataclasses import dataclass
from functools import wraps
from typing import Any, Callable, Dict, Iterator, List, Literal, Optional, Sequence, Tuple, Union

from ..errors import ConfigError, DataError, Problem
from ..formats.candidates import read_candidates
from ..formats.context import BadData, Bookmark, tolerance
from ..formats.file_list import file_list
from ..formats.formats import Reader
from ..formats.spellings import Collected
from ..formats.text_file import PathOrPaths, check_encoding
from ..messages import Episode
from ..registry import registry
from .held_out import HeldOut
from .other_format import NO_TASK, with_other_teacher
from .teacher import Teacher


@dataclass(frozen=True)
class FileOptions:
    """Hold the arguments that all teachers of files have; also `teacher`, the teacher's registered
    name, and `layout_file`, the file with the layout that its reader uses ("" for none).

    train (Optional[Union[str, List[str]]]): File or files of the split `train`: plain or
        compressed (gzip, zip), a folder, or a pattern such as "data/*.csv".
    dev (Optional[Union[str, List[str]]]): File or files of the split `dev`.
    test (Optional[Union[str, List[str]]]): File or files of the split `test`.
    dev_share (float): Fraction of the training conversations (or examples) to hold out as split
        `dev`, 0.0 to less than 1.0; only if no dev is given. Each conversation is drawn by a hash
        of dev_seed and its name, or its number if it has no name.
    test_share (float): Fraction of the training conversations (or examples) to hold out as split
        `test`, drawn in the same way; only if no test is given.
    dev_seed (int): Seed of the draws for dev_share and test_share.
    on_bad_data (str): Whether unreadable data is an "error", or is left out and listed ("skip").
        "skip" always leaves out a whole conversation.
    max_bad_share (float): Fraction of a file's conversations (or examples) that may be left out,
        0.0 to 1.0; more is an error.
    encoding (Optional[str]): Encoding of the files, such as "cp1252"; if None, UTF-8, or UTF-16
        or UTF-32 if a byte order mark indicates it.
    mutators (Optional[Union[List, Dict]]): Mutators to apply in order, each in a section
        `[tasks.x.mutators.name]`.
    candidates (Optional[str]): File of candidates for all messages, one per line, numbered or
        not; `\\n` means a line end.
    streaming (bool): Read the files for every epoch instead of holding them in memory.
    RAISES (ConfigError): If an argument is invalid, or a share is given together with its split's
        files.
    """

    teacher: str
    train: Optional[PathOrPaths] = None
    dev: Optional[PathOrPaths] = None
    test: Optional[PathOrPaths] = None
    dev_share: float = 0.0
    test_share: float = 0.0
    dev_seed: int = 0
    on_bad_data: Literal["error", "skip"] = "error"
    max_bad_share: float = 0.05
    encoding: Optional[str] = None
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None
    candidates: Optional[str] = None
    streaming: bool = False
    layout_file: str = ""

    @property
    def paths(self) -> Dict[str, PathOrPaths]:
        """The file or files of each split that has any."""
        given = {"train": self.train, "dev": self.dev, "test": self.test}
        return {split: files for split, files in given.items() if files}

    @property
    def held_out(self) -> HeldOut:
        """The division of the training files into splits."""
        return HeldOut(self.dev_share, self.test_share, self.dev_seed)

    def check(self) -> None:
        """Check the options against each other and the files.

        RAISES (ConfigError): If an option is invalid.
        """
        problems = self.held_out.problems(self.teacher, self.paths)

        def refuse(name: str, text: str, hint: str) -> None:
            problems.append(Problem("", f"'{name}' of {self.teacher} {text}", hint))

        if not 0.0 <= self.max_bad_share <= 1.0:
            refuse("max_bad_share", f"is {self.max_bad_share}", "give 0.0 to 1.0")
        try:
            check_encoding(self.encoding or "utf-8")
        except LookupError:
            hint = 'give a name that Python knows, such as "cp1252" or "latin-1"'
            refuse("encoding", f"is '{self.encoding}'", hint)
        if problems:
            raise ConfigError(problems)


@dataclass(eq=False)
class FileSource:
    """Read the episodes of some files, one file after the other.

    From the second file on, ids start with the file's number, so that they stay unique.

    reader (Reader): Returns the episodes of one file.
    paths (Sequence[str]): The files.
    options (FileOptions): Options of the reading.
    part (str): The split to show, if the files are divided into several.
    has_lines (bool): Whether the reader can begin at any line.
    task (str): Name of the task, for error messages.

    bad (Dict[str, BadData]): For each file, the bad data of its last complete reading.
    about (str): Description of the part of the files that the episodes are from; "" for all.
    takes_folders (bool): Whether a path may be the folder of a data set (see
        ``Split.check_source``).
    is_by_line (bool): Whether the format and the options allow reading each line separately.
    """

    reader: Reader
    paths: Sequence[str]
    options: FileOptions
    part: str = ""
    has_lines: bool = False
    task: str = NO_TASK

    # Labels are compared here, because the error can then name the line (see
    # ``Split.compare_labels``).
    compares_labels = True

    def __post_init__(self) -> None:
        self.origin = ", ".join(self.paths)
        self.held_out, self.layout_file = self.options.held_out, self.options.layout_file
        self.about = self.held_out.about(self.part)
        self.takes_folders = bool(self.layout_file)
        self.is_by_line = self.has_lines and self.options.on_bad_data != "skip"
        self.bad: Dict[str, BadData] = {}
        self._section: Optional[Tuple[int, int]] = None

    def section(self, number: int, n: int) -> "FileSource":
        """Return one of n sections of the files, if each line can be read separately: every n-th
        line. All lines are read from the disk, but only those of the section are parsed.

        number (int): Number of the section, from 0.
        """
        section = copy.copy(self)
        section._section, section.is_by_line = (number, n), False
        return section

    def __call__(self) -> Iterator[Episode]:
        """Read the episodes."""
        return self.read_from(Bookmark())

    def read_from(self, at: Bookmark) -> Iterator[Episode]:
        """Read the episodes from a position on.

        at (Bookmark): Where to start; moved along while reading.
        """
        at.encoding, at.section = self.options.encoding, self._section
        # Lines that were read already are those of one file.
        for number in range(at.file, len(self.paths) if at.piece is None else at.file + 1):
            at.open(number)
            for episode in self._read(self.paths[number], at):
                if self.part and self.held_out.split_of(episode) != self.part:
                    continue
                if number:
                    for message in episode:
                        message["id"] = f"{number}:{message['id']}"
                yield episode
            # Only one section checks that the file has an example, perhaps in another section.
            if self._section and at.has(1) and at.counts.n_without == at.counts.n_read:
                whole = Bookmark({"file": number}, encoding=at.encoding)
                next(self._read(self.paths[number], whole), None)

    def _read(self, path: str, at: Bookmark) -> Iterator[Episode]:
        """Read one file, and collect its errors as far as the settings tolerate them."""
        gathered, skips = tolerance().bad_data, self.options.on_bad_data == "skip"
        counts, is_begin = at.counts, at.is_at_begin
        counts.path = path
        at.bad = counts if skips or gathered is not None else None
        classes = tolerance().classes
        if at.piece is not None and classes is not None:  # See ``compare``.
            classes = counts.classes = Collected()
        try:
            yield from at.counted(self.reader(path, at=at), classes)
        except DataError as error:
            is_unread = is_begin and not counts.n_read
            if is_unread:
                first, given = counts.first[0] if counts.first else error, self.options
                names = given.teacher, self.task, given.layout_file, given.encoding
                other = with_other_teacher(first, path, *names)
                if other is not first:
                    raise other from None
            # If data was skipped, this already explains why no example is left.
            if not is_unread or not counts.n_skipped:
                if gathered is None:
                    raise
                counts.add(error)
                gathered[path] = counts
        max_share = self.options.max_bad_share if skips else 0.0
        if counts.share > max_share:
            if gathered is None:
                raise counts.too_many(max_share)
            gathered[path] = counts
        if not at.is_part:
            self.bad[path] = counts

    def compare(self, part: BadData) -> None:
        """Compare the labels in a part of a file, which was read by itself, with earlier labels.

        RAISES (DataError): If two labels that are classes differ only by case or blanks.
        """
        seen = tolerance().classes
        if seen is not None and part.classes is not None:
            for name, place in part.classes.known.items():
                seen.add(name, place)


def check_delimiter(teacher: str, delimiter: Optional[str]) -> None:
    """Check that the delimiter of cells is one character.

    RAISES (ConfigError): If the delimiter is longer, or a quote or line end.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        text = f"'delimiter' of {teacher} is {delimiter!r}"
        raise ConfigError([Problem("", text, 'give one character, such as ";"')])


@dataclass
class CandidateFile:
    """Read the fixed candidates in a file, one per line, only when they are needed.

    path (str): The file.
    """

    path: str

    def __call__(self) -> List[str]:
        """Return the candidates."""
        return read_candidates(self.path)


# The arguments of ``FileOptions`` that a config can set, and their documentation.
SHARED = {
    name: parameter
    for name, parameter in inspect.signature(FileOptions).parameters.items()
    if name not in ("teacher", "layout_file")
}
DOCUMENTATION = inspect.cleandoc(FileOptions.__doc__ or "").partition("\n\n")[2]


def file_teacher(name: str) -> Callable[[Callable[..., Teacher]], Callable[..., Teacher]]:
    """Register a function that takes ``FileOptions`` and further arguments as a teacher that takes
    all of these arguments by name.

    The signature and the docstring of the registered function include the shared arguments: the
    files after the required arguments, and the other shared arguments at the end.

    name (str): The name in configs.
    """

    def register(function: Callable[..., Teacher]) -> Callable[..., Teacher]:
        own = inspect.signature(function)
        _, *parameters = own.parameters.values()
        required = [each for each in parameters if each.default is each.empty]
        train, dev, test, *others = SHARED.values()
        parameters = [*required, train, dev, test, *parameters[len(required) :], *others]
        signature = own.replace(parameters=parameters)

        @wraps(function)
        def build(*args: Any, **kwargs: Any) -> Teacher:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            shared = {key: given.pop(key) for key in SHARED if key in given}
            return function(FileOptions(name, **shared), **given)

        build.__signature__ = signature  # type: ignore[attr-defined]
        build.__annotations__ = {each.name: each.annotation for each in parameters}
        build.__doc__ = f"{inspect.getdoc(function)}\n\n{DOCUMENTATION}"
        return registry.teachers(name, func=build)

    return register


def read_files(
    options: FileOptions,
    reader_of: Callable[[str], Reader],
    has_lines: Callable[[str], bool] = lambda path: False,
    made: Callable[..., Teacher] = Teacher,
    **more: Any,
) -> Teacher:
    """Build the teacher of the files that the options name. It has a source for each split that has
    files, or that is held out from the training files.

    reader_of (Callable): Returns the reader of one file for a split.
    has_lines (Callable): Whether the reader can begin at any line of a file.
    made (Callable): Class of the teacher.
    more (Any): Further arguments of the class.
    RAISES (ConfigError): If an option is invalid.
    """
    options.check()

    def source(split: str, part: str = "") -> FileSource:
        paths = file_list(options.paths[split])
        return FileSource(reader_of(split), paths, options, part, all(map(has_lines, paths)))

    sources = {split: source(split) for split in options.paths}
    for split in options.held_out.splits if options.train else ():
        sources[split] = source("train", split)
    return made(
        sources,
        candidates=CandidateFile(options.candidates) if options.candidates else None,
        mutators=options.mutators,
        streaming=options.streaming,
        **more,
    )
