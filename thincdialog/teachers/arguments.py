"""What the arguments that registered teachers share mean."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from ..examples.mutating import Source
from ..formats.bookmark import Bookmark
from ..formats.candidates import read_list
from ..formats.text_file import PathOrPaths
from ..messages import Episode

# Mutators as a list, or as the named sub-sections of a config give them.
Mutators = Union[None, Sequence[Any], Mapping[str, Any]]

# Takes a path and, by the name `at`, a bookmark that it may move along.
Reader = Callable[..., Iterable[Episode]]


def mutator_list(mutators: Mutators) -> List[Callable]:
    """Mutators in order, from a list, or from the config's sections
    `[tasks.x.mutators.name]` or `[tasks.x.mutators.*.name]`."""
    if not isinstance(mutators, Mapping):
        return list(mutators or ())
    return [step for key, value in mutators.items() for step in (value if key == "*" else [value])]


class FileSource:
    """The episodes of some files, one file after the other.

    From the second file on, ids start with the file's number, so that they stay unique.

    reader (Reader): Gives the episodes of one file.
    paths (PathOrPaths): The file or files.
    """

    def __init__(self, reader: Reader, paths: PathOrPaths):
        self.reader = reader
        self.paths = [paths] if isinstance(paths, str) else list(paths)
        self.origin = ", ".join(self.paths)

    def __call__(self) -> Iterator[Episode]:
        """Read them."""
        return self.read_from(Bookmark())

    def read_from(self, at: Bookmark) -> Iterator[Episode]:
        """Read them from a place on.

        at (Bookmark): Lies where to begin, and is moved along.
        """
        for number, path in enumerate(self.paths[at.file :], start=at.file):
            at.open(number)
            for episode in self.reader(path, at=at):
                if number:
                    for message in episode:
                        message["id"] = f"{number}:{message['id']}"
                yield episode


def file_sources(reader: Reader, **paths: Optional[PathOrPaths]) -> Dict[str, Source]:
    """A source for each split that has a path.

    reader (Reader): Gives the episodes of one file.
    paths (Optional[PathOrPaths]): Of each split the file, or files one after the other.
    """
    return {split: FileSource(reader, files) for split, files in paths.items() if files}


@dataclass
class CandidateFile:
    """The fixed candidates in a file, one a line, read when they are needed.

    path (str): The file.
    numbered (bool): Whether leading line numbers are taken off (fbdialog).
    """

    path: str
    numbered: bool = False

    def __call__(self) -> List[str]:
        """Read them."""
        return read_list(self.path, self.numbered)
