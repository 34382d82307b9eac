"""What code of users gives to the package: looked at where it is given, and told with the file,
the function and the line that it comes from.

Base classes that users derive from are ``Contract``: they say what their methods return, and
methods of classes outside of the package are looked at each time they return. Our own are not,
so they cost nothing.
"""

import functools
import gc
import inspect
import os
import site
import sysconfig
from importlib.metadata import distributions
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Callable, ClassVar, Mapping, NamedTuple, Optional

from .errors import DialogError

PACKAGE = __name__.partition(".")[0]
# Modules that ``--code`` names begin so.
CODE_PREFIX = f"{PACKAGE}_code_"
# Letters of a value that are shown.
SHOWN = 60
# Folders of what is installed, and of Python itself.
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(
    {*(sysconfig.get_path(name) for name in ("purelib", "platlib")), *site.getsitepackages()}
)


class CodeError(DialogError):
    """Something is wrong in code of a user's: it cannot be imported, or gives what it must
    not."""


class Returned(NamedTuple):
    """What a function of a user's shall return.

    wanted (str): In words, after "should be".
    fits (Callable): Of what was returned and of the positional arguments: whether it is so.
    """

    wanted: str
    fits: Callable[..., bool]


class Contract:
    """Base of classes that users derive from.

    returns (Mapping[str, Returned]): What methods shall return, by name. A subclass that says
        it anew replaces all.
    """

    returns: ClassVar[Mapping[str, Returned]] = {}

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if _is_ours(cls):
            return
        for name, returned in cls.returns.items():
            method = vars(cls).get(name)
            if isinstance(method, FunctionType):
                setattr(cls, name, _watched(method, returned))


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == PACKAGE


def _watched(method: FunctionType, returned: Returned) -> Callable:
    fits = returned.fits

    @functools.wraps(method)
    def watched(self: Any, *given: Any, **named: Any) -> Any:
        value = method(self, *given, **named)
        if not fits(value, *given):
            raise wrong_value(method, value, returned.wanted)
        return value

    return watched


def wrong_value(function: Any, value: Any, wanted: str) -> CodeError:
    """The error for a function of a user's that has returned something else.

    function (Any): What was called.
    wanted (str): What it should have returned, in words.
    """
    return CodeError(f"{place_of(function)} returned {show(value)}, but should return {wanted}")


def show(value: Any) -> str:
    """A value in few letters: its kind, and what it is if that is short."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{one(type(value))} of shape {shape}"
    text = " ".join(repr(value).split())
    size = f" of {len(value)}" if isinstance(value, (list, tuple)) else ""
    return f"{one(type(value))}{size} ({text[:SHOWN]}{'...' if len(text) > SHOWN else ''})"


def one(kind: type) -> str:
    """A class in words: "an Agent"."""
    return f"{'an' if kind.__name__[0] in 'aeiouAEIO' else 'a'} {kind.__name__}"


# --- where ----------------------------------------------------------------------------------


def place_of(function: Any) -> str:
    """Where a function, or what can be called or built like one, begins: "mine.py:12  act()"."""
    function = _called(function)
    code = getattr(function, "__code__", None)
    name = _short_name(getattr(function, "__qualname__", "?"))
    name = name if isinstance(function, type) else f"{name}()"
    if isinstance(code, CodeType):
        return f"{_shown_path(code.co_filename)}:{code.co_firstlineno}  {name}"
    try:
        file, line = inspect.getsourcefile(function) or "?", inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return f"{getattr(function, '__module__', '?')}.{name}"
    return f"{_shown_path(file)}:{line}  {name}"


def _called(function: Any) -> Any:
    """The function, or the class, whose code is at work when something is called."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__qualname__"):  # An object that can be called.
        function = getattr(type(function), "__call__", type(function))  # noqa: B004
    return getattr(function, "__func__", function)


def _short_name(name: str) -> str:
    return name.rpartition("<locals>.")[2]


def _shown_path(path: str) -> str:
    """As the user would write it: from where he is, if it lies there."""
    here = Path.cwd()
    found = Path(path)
    return str(found.relative_to(here)) if found.is_relative_to(here) else path


def is_users(function: Any) -> bool:
    """Whether a function, or an object that can be called, is code of a user's."""
    code = getattr(_called(function), "__code__", None)
    return isinstance(code, CodeType) and _is_users_file(code.co_filename)


@functools.lru_cache(maxsize=None)
def _is_users_file(path: str) -> bool:
    # What is compiled names its source from where it was built.
    is_source = path.endswith(".py") and (os.path.isabs(path) or os.path.isfile(path))
    if not is_source or _lies_in(path, (str(Path(__file__).parent),)):
        return False
    for folder in _INSTALLED:
        if _lies_in(path, (folder,)):
            # Of what is installed, packages that register functions of ours.
            return Path(path).relative_to(folder).parts[0].partition(".")[0] in _plugins()
    return not _lies_in(path, _STANDARD)


def _lies_in(path: str, folders: Any) -> bool:
    return any(path.startswith(os.path.join(folder, "")) for folder in folders)


@functools.lru_cache(maxsize=None)
def _plugins() -> frozenset:
    points = (point for each in distributions() for point in each.entry_points)
    found = (point for point in points if point.group.startswith(f"{PACKAGE}_"))
    return frozenset(point.value.partition(":")[0].partition(".")[0] for point in found)


def told(error: BaseException) -> str:
    """An error in one line: its kind and its text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place_in(error: Optional[BaseException]) -> str:
    """The innermost line of a user's that an error went through: "mine.py:12  in act()"; ""
    if there is none. A function that was called with the wrong arguments counts, too, and a
    class without a method that it must have."""
    while error is not None:
        place, trace = "", error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if _is_users_file(code.co_filename):
                name = getattr(code, "co_qualname", code.co_name)
                line = f"{_shown_path(code.co_filename)}:{trace.tb_lineno}"
                place = f"{line}  in {_short_name(name)}()"
            trace = trace.tb_next
        if not place and isinstance(error, TypeError):
            place = _misfit(error)
        if not place and isinstance(error, NotImplementedError):
            place = _lack(error)
        if place:
            return place
        error = error.__cause__ or error.__context__
    return ""


def _misfit(error: TypeError) -> str:
    """Where the function of a user's stands that could not be called with what it was given.
    Python names it in the text, and nothing else leads there."""
    name, brackets, _ = str(error).partition("()")
    for function in gc.get_objects() if brackets else ():
        # Not isinstance: some are proxies of what is gone.
        if type(function) is FunctionType and function.__qualname__ == name:
            if is_users(function):
                return place_of(function)
    return ""


def _lack(error: NotImplementedError) -> str:
    """Where the class of a user's stands that lacks a method of its contract."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame if trace is not None else None
    owner = frame.f_locals.get("self") if frame is not None else None
    if frame is None or not isinstance(owner, Contract) or _is_ours(type(owner)):
        return ""
    return f"{place_of(type(owner))} has no {frame.f_code.co_name}()"


def told_of_code(error: BaseException) -> str:
    """An error that came from code of a user's, in one line that begins with file, line and
    function; "" if it came from elsewhere."""
    place = place_in(error)
    return f"{place}: {told(error)}" if place else ""


# --- checks of several contracts ------------------------------------------------------------


def are_mappings(values: Any, given: Any = None, *rest: Any) -> bool:
    """Whether there is a sequence of dicts: one for each of what was given, if it was."""
    try:
        n = len(values)
    except TypeError:
        return False
    if isinstance(values, (str, bytes, Mapping)) or given is not None and n != len(given):
        return False
    return all(isinstance(value, Mapping) for value in values)


def is_mapping(value: Any, *given: Any) -> bool:
    """Whether it is a dict, such as a message."""
    return isinstance(value, Mapping)


def is_kind(*kinds: type) -> Callable[..., bool]:
    """A check for objects of some classes."""
    return lambda value, *given: isinstance(value, kinds)


def holds(kind: type) -> Callable[..., bool]:
    """A check for dicts from names to objects of a class."""

    def fits(value: Any, *given: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(isinstance(k, str) and isinstance(v, kind) for k, v in value.items())

    return fits
