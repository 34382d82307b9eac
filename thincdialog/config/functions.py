"""Look up the arguments, types and documentation of registered functions."""

import inspect
import math
import re
from contextlib import suppress
from inspect import Parameter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, get_type_hints

from ..contract import CODE_PREFIX, NOT_PARLAIS, source_of
from ..registry import registry

REQUIRED = Parameter.empty
# An argument in a docstring: "width (int): Units of the layer", later lines indented.
_DOCUMENTED = r"^[ \t]{{0,8}}\*{{0,2}}{} ?(\(.*?\))?:[ \t]+(\S.*(?:\n[ \t]+\S.*)*)$"
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

# Ranges for numeric arguments of functions that do not check them: Thinc's optimizers train with a
# negative learning rate, and its layers of width 0 fail with an error from NumPy. Each range has
# its lowest valid number, the limit that numbers must stay below, and a description in words.
_SIZE = (1, math.inf, "1 or more")
_NOT_NEGATIVE = (0, math.inf, "0 or more")
_DECAY = (0, 1, "0 or more, less than 1")
_SIZES = ("width", "hidden_width", "nO", "nI", "nP", "nV", "nF", "nH")
# Ranges by registry and argument.
_RANGES: Dict[Tuple[str, str], Tuple[float, float, str]] = {
    **{("optimizers", name): _NOT_NEGATIVE for name in ("learn_rate", "L2", "eps", "grad_clip")},
    **{("optimizers", name): _DECAY for name in ("beta1", "beta2")},
    **{(kind, name): _SIZE for kind in ("layers", "models") for name in _SIZES},
}
# Only functions in these modules are checked, because arguments of custom functions may have other
# meanings.
_KNOWN = ("thinc.", "thincdialog.")


class FunctionInfo(NamedTuple):
    """Describe a registered function.

    where (str): File and line of its definition.
    arguments (Dict[str, Parameter]): Its arguments by name. A missing annotation is ``Any``, and a
        missing default is ``REQUIRED``.
    variadic (Optional[Parameter]): Its ``*args``; None if it takes none.
    keywords (str): Name of its ``**kwargs``, which a config cannot fill; "" if it has none.
    takes_any (bool): Whether it has no signature, so that its arguments are unknown.
    """

    registry: str
    name: str
    function: Callable
    where: str
    arguments: Dict[str, Parameter]
    variadic: Optional[Parameter]
    keywords: str
    takes_any: bool

    @property
    def is_ours(self) -> bool:
        """Whether the function is defined in this package."""
        return (getattr(self.function, "__module__", None) or "").startswith("thincdialog.")

    def positional(self, group: Any) -> List[Parameter]:
        """Return, for each block of a ``*`` group, the argument that receives the block."""
        n = len(group) if isinstance(group, dict) else 0
        found = [given for given in self.arguments.values() if given.kind in _POSITIONAL][:n]
        return found + [self.variadic] * (n - len(found)) if self.variadic else found

    def out_of_range(self, argument: str, value: Any) -> str:
        """Return a description of the range that a value should be in; "" if it is in range."""
        found = _RANGES.get((self.registry, argument))
        module = getattr(self.function, "__module__", None) or ""
        if not found or not module.startswith(_KNOWN) or value is None or isinstance(value, dict):
            return ""
        least, limit, words = found
        numbers = value if isinstance(value, list) else [value]
        are_good = [isinstance(each, (int, float)) and least <= each < limit for each in numbers]
        if are_good and all(are_good):
            return ""
        return f"a list of one number or more, each {words}" if isinstance(value, list) else words

    def documentation(self, argument: str) -> str:
        """Return the documentation of an argument in the docstring; "" if there is none."""
        text = inspect.getdoc(self.function) or ""
        match = re.search(_DOCUMENTED.format(re.escape(argument)), text, re.MULTILINE)
        if match is None:
            return ""
        words = " ".join(line.strip() for line in match[2].splitlines())
        return f"{argument} {match[1]}: {words}" if match[1] else f"{argument}: {words}"

    def hint(self, argument: str) -> str:
        """Return the documentation of an argument, and the place of the function's definition."""
        if argument == "opt" and "shared" in self.arguments:
            return f"{NOT_PARLAIS} ({self.where})"
        text = self.documentation(argument)
        return f"{text} ({self.where})" if text else f"see {self.where}"


_DESCRIBED: Dict[Tuple[str, str], FunctionInfo] = {}


def describe_function(registry_name: str, name: str) -> FunctionInfo:
    """Look up a registered function.

    RAISES (catalogue.RegistryError): If it is not registered.
    """
    function = registry.get(registry_name, name)
    known = _DESCRIBED.get((registry_name, name))
    if known is None or known.function is not function:
        known = _DESCRIBED[registry_name, name] = _describe(registry_name, name, function)
    return known


def _describe(registry_name: str, name: str, function: Callable) -> FunctionInfo:
    arguments: Dict[str, Parameter] = {}
    variadic, keywords, takes_any = None, "", False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # Compiled functions may have no signature.
        parameters, takes_any = [], True
    hints = _hints(function.__init__ if inspect.isclass(function) else function)
    for parameter in parameters:
        annotation = hints.get(parameter.name, parameter.annotation)
        if annotation is REQUIRED or isinstance(annotation, str):
            annotation = Any
        parameter = parameter.replace(annotation=annotation)
        if parameter.kind is Parameter.VAR_POSITIONAL:
            variadic = parameter
        elif parameter.kind is Parameter.VAR_KEYWORD:
            keywords = parameter.name
        else:
            arguments[parameter.name] = parameter
    return FunctionInfo(
        registry_name, name, function, locate(function), arguments, variadic, keywords, takes_any
    )


def _hints(target: Any) -> Dict[str, Any]:
    try:
        return get_type_hints(target)
    except Exception:  # Some name cannot be resolved: use the other annotations.
        names, found = getattr(inspect.unwrap(target), "__globals__", {}), {}
    for name, annotation in getattr(target, "__annotations__", {}).items():
        with suppress(Exception):
            found.update(get_type_hints(SimpleNamespace(__annotations__={name: annotation}), names))
    return found


def locate(function: Callable) -> str:
    """Return file and line of a function; the file is relative to the folder that it is imported
    from."""
    file, line = source_of(function)
    module = getattr(inspect.unwrap(function), "__module__", None) or ""
    if not file:
        return module or "?"
    path = Path(file)
    name = "" if module.startswith(CODE_PREFIX) else module
    n_parts = name.count(".") + (2 if name and path.name == "__init__.py" else 1)
    return f"{'/'.join(path.parts[-n_parts:])}:{line}"
