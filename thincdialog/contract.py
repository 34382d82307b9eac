"""Check values that users' code passes to the package, and report wrong ones with the file, the
function and the line that they come from.

All checks go through ``called``, which calls a user's function and checks the value that it
returns. Base classes for users derive from ``Contract``: they declare the return values of their
methods, and methods of classes outside of the package are then called through ``called``. So are
callable objects from users' code that registered functions build, such as losses and initializers
(``watching``). The package's own functions are not checked, so they cost nothing.
"""

import functools
import gc
import inspect
import math
import os
import site
import sysconfig
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_stack, walk_tb
from types import CodeType, FrameType, FunctionType
from typing import Any, Callable, ClassVar, Iterable, Mapping, NamedTuple, Optional, Tuple, cast

from .errors import DialogError

PACKAGE = __name__.partition(".")[0]
# Prefix of the names of modules from ``--code``.
CODE_PREFIX = f"{PACKAGE}_code_"
# Number of characters of a value to show.
SHOWN = 60
# Largest number of cells for which an array is shown whole.
MAX_CELLS = 6
# Error text for agents with ParlAI's arguments.
NOT_PARLAIS = (
    "ParlAI's agents take (opt, shared=None); here the arguments are settings of the config, as in "
    "__init__(self, size: int = 3), and clone() makes the copies"
)


def _folders(*paths: str) -> Tuple[str, ...]:
    """Return paths of folders as prefixes of the paths of their files."""
    return tuple({os.path.join(path, "") for path in paths})


# Folders of this package, of Python itself, and of installed packages: also the folder of Thinc,
# because ``pip install --target`` installs into any folder.
_OURS = _folders(os.path.dirname(__file__))
_STANDARD = _folders(*map(sysconfig.get_path, ("stdlib", "platstdlib")))
_INSTALLED = _folders(
    *map(sysconfig.get_path, ("purelib", "platlib")),
    *site.getsitepackages(),
    str(Path(cast(Any, find_spec("thinc")).origin).parents[1]),
)


class CodeError(DialogError):
    """A user's code has a mistake: it cannot be imported, or returns an invalid
    value."""


class Returned(NamedTuple):
    """Describe the value that a user's function should return.

    wanted (str): Description of the value, to follow "should be" in a message.
    fits (Callable): Takes the value and the function's positional arguments, and returns whether
        the value is valid. It is defined in a module, so that watched functions can be pickled.
    """

    wanted: str
    fits: Callable[..., bool]


def called(function: Callable, returned: Returned, *given: Any, **named: Any) -> Any:
    """Call a user's function.

    returned (Returned): Description of the value that it should return.
    RAISES (CodeError): If it does not take these arguments, or returns another value.
    """
    try:
        value = function(*given, **named)
    except TypeError as error:
        trace = error.__traceback__
        if trace is not None and trace.tb_next is not None:  # Raised within the function.
            raise
        raise CodeError(f"{place_of(function)}: {error_line(error)}") from error
    if not returned.fits(value, *given):
        raise wrong_value(function, value, returned.wanted)
    return value


class Watched:
    """Wrap a user's function so that its calls go through ``called``."""

    def __init__(self, function: Callable, returned: Returned):
        functools.update_wrapper(self, function)
        self._returned = returned

    def __call__(self, *given: Any, **named: Any) -> Any:
        return called(self.__wrapped__, self._returned, *given, **named)  # type: ignore


def watching(returned: Returned) -> Callable[[Any, Callable], Any]:
    """Return a ``watch`` function for ``DialogRegistry.makes``, for registries whose functions
    build callable objects: users' objects are wrapped, so that their return value is checked."""

    def watch(built: Any, function: Callable) -> Any:
        is_class = isinstance(built, type) and not is_ours(built)
        return Watched(built, returned) if is_class or is_users(built) else built

    return watch


class Contract:
    """Base of classes that users derive from.

    returns (Mapping[str, Returned]): Return values of methods, by name. A subclass that defines
        ``returns`` replaces the whole mapping.
    has (Mapping[str, Returned]): Values of attributes, by name; see ``check_attributes``.
    """

    returns: ClassVar[Mapping[str, Returned]] = {}
    has: ClassVar[Mapping[str, Returned]] = {}

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if is_ours(cls):
            return
        for name, returned in cls.returns.items():
            definer = next((base for base in cls.__mro__ if name in vars(base)), Contract)
            # The methods of other classes that derive from ``Contract`` are already watched.
            is_own = definer is cls or not issubclass(definer, Contract)
            method = vars(definer)[name] if is_own else None
            if isinstance(method, staticmethod):
                setattr(cls, name, staticmethod(Watched(method.__func__, returned)))
            elif isinstance(method, classmethod):
                setattr(cls, name, classmethod(_watched(method.__func__, returned)))
            elif isinstance(method, FunctionType):
                setattr(cls, name, _watched(method, returned))


def is_ours(cls: type) -> bool:
    """Return whether a class is defined in this package."""
    return cls.__module__.partition(".")[0] == PACKAGE


def _watched(method: Any, returned: Returned) -> Callable:
    @functools.wraps(method)
    def watched(self: Any, *given: Any, **named: Any) -> Any:
        return called(method.__get__(self), returned, *given, **named)

    return watched


def check_attributes(owner: Any) -> None:
    """Check that an object of a user's class has the attributes that it needs by now.

    RAISES (CodeError): If an attribute is missing or invalid.
    """
    if not isinstance(owner, Contract) or is_ours(type(owner)):
        return
    for name, returned in owner.has.items():
        try:
            value = getattr(owner, name)
        except AttributeError as error:
            if place_in(error):
                raise
            text = f"{place_of(type(owner))} has no '{name}': give it {returned.wanted}"
            raise CodeError(text) from None
        if not returned.fits(value):
            place = f"{place_of(type(owner))}.{name}"
            raise CodeError(f"{place} is {show(value)}, but should be {returned.wanted}")


def check_methods(owner: Any) -> None:
    """Check that the methods of an object of a user's class can be called, even if the object
    replaces them. Users' functions that are set on the object itself are watched from then on, as
    methods of its class are.

    RAISES (CodeError): If a method cannot be called.
    """
    if not isinstance(owner, Contract) or is_ours(type(owner)):
        return
    for name in owner.returns:
        held: Any = inspect.getattr_static(owner, name, _watched)
        if isinstance(held, property) or not callable(getattr(owner, name, _watched)):
            found = "a property" if isinstance(held, property) else show(held)
            place = f"{place_of(type(owner))}.{name}"
            raise CodeError(f"{place} is {found}, but should be a method")
        own: Any = getattr(owner, "__dict__", {}).get(name)
        if own is not None and is_users(own):
            setattr(owner, name, Watched(own, owner.returns[name]))


def wrong_value(function: Any, value: Any, wanted: str) -> CodeError:
    """Make the error for a user's function that has returned a wrong value.

    function (Any): The function.
    wanted (str): Description of the value that it should have returned.
    """
    return CodeError(f"{place_of(function)} returned {show(value)}, but should return {wanted}")


def show(value: Any) -> str:
    """Describe a value briefly: its type, and as much of the value as fits."""
    if value is None:
        return "None"
    if _has_shape(value):
        dtype = getattr(value, "dtype", None)
        cells = f": {value.tolist()}" if getattr(value, "size", SHOWN) <= MAX_CELLS else ""
        is_good = getattr(dtype, "kind", "") != "f" or math.isfinite(float(value.sum(dtype="d")))
        tail = "" if cells or is_good else ", not finite"
        return f"{one(type(value))} of shape {value.shape}, {dtype or '?'}{tail}{cells}"
    if isinstance(value, (list, tuple)) and any(map(_has_shape, value[:2])):
        parts = "; ".join(map(show, value[:2]))
        return f"{one(type(value))} of {len(value)} ({parts}{'; ...' if value[2:] else ''})"
    text = " ".join(repr(value).split())
    size = f" of {len(value)}" if isinstance(value, (list, tuple)) else ""
    return f"{one(type(value))}{size} ({text[:SHOWN]}{'...' if len(text) > SHOWN else ''})"


def _has_shape(value: Any) -> bool:
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and bool(shape)


def one(kind: type) -> str:
    """Return a class name with its article: "an Agent"."""
    return f"{'an' if kind.__name__[0] in 'aeiouAEIO' else 'a'} {kind.__name__}"


# --- places in code -------------------------------------------------------------------------


def place_of(function: Any) -> str:
    """Return the place where a function, class or callable begins: "mine.py:12  act()"."""
    function = _called(function)
    name = _short_name(getattr(function, "__qualname__", "?"))
    name = name if isinstance(function, type) else f"{name}()"
    file, line = source_of(function)
    if not file:
        return f"{getattr(function, '__module__', '?')}.{name}"
    return f"{_shown_path(file)}:{line}  {name}"


def source_of(function: Any) -> Tuple[str, int]:
    """Return the file and the line where a function or class begins; ("", 0) if there is none."""
    function = _called(function)
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        return code.co_filename, code.co_firstlineno
    try:
        return inspect.getsourcefile(function) or "?", inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return "", 0


def _called(function: Any) -> Any:
    """Return the function or class whose code runs when an object is called."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__qualname__"):  # An object that can be called.
        function = getattr(type(function), "__call__", type(function))  # noqa: B004
    return getattr(function, "__func__", function)


def _short_name(name: str) -> str:
    return name.rpartition("<locals>.")[2]


def _shown_path(path: str) -> str:
    """Return a path as the user would write it: relative if it is in the current folder."""
    here = Path.cwd()
    found = Path(path)
    return str(found.relative_to(here)) if found.is_relative_to(here) else path


def is_users(function: Any) -> bool:
    """Return whether a function or a callable object is a user's code."""
    code = getattr(_called(function), "__code__", None)
    return isinstance(code, CodeType) and _is_users_file(code.co_filename)


@functools.lru_cache(maxsize=None)
def _is_users_file(path: str) -> bool:
    # Compiled code names its source file on the machine that built it.
    is_source = path.endswith(".py") and (os.path.isabs(path) or os.path.isfile(path))
    if not is_source or path.startswith(_OURS):
        return False
    for folder in _INSTALLED:
        if path.startswith(folder):
            # Of installed packages, only those that extend this one are users' code.
            return Path(path).relative_to(folder).parts[0].partition(".")[0] in _plugins()
    return not path.startswith(_STANDARD)


@functools.lru_cache(maxsize=None)
def _plugins() -> frozenset:
    points = (point for each in distributions() for point in each.entry_points)
    found = (point for point in points if point.group.startswith(f"{PACKAGE}_"))
    return frozenset(point.value.partition(":")[0].partition(".")[0] for point in found)


def error_line(error: BaseException) -> str:
    """Return an error in one line: its type and its text."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # A user's error class may fail in __str__().
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place_in(error: Optional[BaseException]) -> str:
    """Return the innermost line of a user's code that an error went through: "mine.py:12  in
    act()"; "" if there is none. A user's function that was called with wrong arguments counts too,
    and so does the class of an object that refused a call or lacks a required method."""
    while error is not None:
        lines = _users_lines(walk_tb(error.__traceback__))
        if place := lines[-1] if lines else _misused_function(error) or _refusing_class(error):
            return place
        error = error.__cause__ or error.__context__
    return ""


def _users_lines(frames: Iterable[Tuple[FrameType, int]]) -> Tuple[str, ...]:
    """Return the lines of users' code among some frames."""
    found = ((frame.f_code, number) for frame, number in frames)
    return tuple(_line(code, n) for code, n in found if _is_users_file(code.co_filename))


def _misused_function(error: BaseException) -> str:
    """Return the place of a user's function that is not watched and was called with wrong
    arguments. Only the text of the error names the function."""
    name, brackets, _ = str(error).partition("()") if isinstance(error, TypeError) else ("", "", "")
    for function in gc.get_objects() if brackets else ():
        # Not isinstance(): some objects are proxies of deleted objects.
        if type(function) is FunctionType and function.__qualname__ == name:
            if is_users(function):
                return place_of(function)
    return ""


def _refusing_class(error: BaseException) -> str:
    """Return the place of the user's class whose object refused a call, or lacks the method."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    owner = frames[-1].f_locals.get("self") if frames else None
    if not isinstance(owner, Contract) or is_ours(type(owner)):
        return ""
    lack = f" has no {frames[-1].f_code.co_name}()" * isinstance(error, NotImplementedError)
    return f"{place_of(type(owner))}{lack}"


def users_line() -> str:
    """Return the innermost line of a user's code that is running now: "mine.py:12  in lights()"; ""
    if there is none."""
    lines = _users_lines(walk_stack(inspect.currentframe()))
    return lines[0] if lines else ""


def _line(code: CodeType, number: int) -> str:
    name = getattr(code, "co_qualname", code.co_name)
    return f"{_shown_path(code.co_filename)}:{number}  in {_short_name(name)}()"


def code_error_line(error: BaseException) -> str:
    """Describe an error from a user's code in one line that begins with file, line and function;
    "" if the error is from other code."""
    place = place_in(error)
    return f"{place}: {error_line(error)}" if place else ""


def reason(error: BaseException) -> str:
    """Describe any error to the user: by its own text if it is of this package, otherwise in one
    line."""
    is_ours = isinstance(error, DialogError)
    return str(error) if is_ours else code_error_line(error) or error_line(error)


# --- checks for several contracts -----------------------------------------------------------


def has_run(value: Any, *given: Any) -> bool:
    """Return whether a function whose value does not matter has run: the body of a generator
    function has not."""
    return not (inspect.isgenerator(value) or inspect.iscoroutine(value))


def is_mapping(value: Any, *given: Any) -> bool:
    """Return whether a value is a dict."""
    return isinstance(value, Mapping)


def is_kind(*kinds: type) -> Callable[..., bool]:
    """Make a check for objects of some classes."""
    return lambda value, *given: isinstance(value, kinds)


def holds(kind: type) -> Callable[..., bool]:
    """Make a check for dicts from names to objects of a class."""

    def fits(value: Any, *given: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(isinstance(k, str) and isinstance(v, kind) for k, v in value.items())

    return fits
