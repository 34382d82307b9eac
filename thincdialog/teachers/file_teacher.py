"""Register teachers of files, which share most of their arguments."""

import inspect
from functools import wraps
from typing import Any, Callable

from ..formats.file_list import file_list
from ..registry import registry
from .arguments import CandidateFile, FileOptions, FileSource, Reader
from .teacher import Teacher

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
