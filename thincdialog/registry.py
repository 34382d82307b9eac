"""All registries: those of Thinc (layers, optimizers, ...) and of this package (agents, ...).

    from thincdialog.api import registry

    @registry.layers("my_layer.v1")
    def my_layer(width: int) -> Model: ...

Installed packages register through entry points, in groups named after the
registry: ``thincdialog_teachers``, ``thincdialog_agents``, ... and, for the registries
that Thinc has too, ``thinc_layers``, ``thinc_optimizers``, ...
"""

import importlib
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint
from pkgutil import iter_modules
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import catalogue

from .contract import error_line, place_of
from .errors import DialogError

# Packages to import, so that all functions of this package are registered.
DEFINING_PACKAGES = (
    "ops.dialog_ops", "ops.dialog_fast_ops", "layers", "losses", "schedules", "optimizers",
    "metrics", "data.tokenizers", "models", "mutators", "batchers", "teachers", "pretrained",
    "agents", "worlds", "callbacks", "loggers", "runners",
)  # fmt: skip


class DuplicateNameError(DialogError):
    """Two different functions were registered under one name."""


class BrokenEntryPointError(DialogError):
    """An installed package offers a function that cannot be imported."""


class DialogRegistry(catalogue.Registry):
    """Register functions by name, as catalogue's registries do, but refuse to overwrite a name. A
    broken function of an installed package is an error only when it is looked up by name.

    made (Any): Type of the objects that its functions build, as an annotation.
    watch (Optional[Callable]): Takes an object that a user's function has built, and the
        function; returns the object, or a wrapper that checks its behaviour.
    """

    made: Any = Any
    watch: Optional[Callable[[Any, Callable], Any]] = None

    def makes(self, made: Any, watch: Optional[Callable[[Any, Callable], Any]] = None) -> None:
        """Set ``made`` and ``watch``, which are used when blocks of a config are built."""
        self.made, self.watch = made, watch

    def register(self, name: str, *, func: Optional[Any] = None) -> Callable[[Any], Any]:
        """Register a function under a name; use as a decorator or call.

        RAISES (DuplicateNameError): If another function has the name.
        """
        if func is None:
            return lambda function: self.register(name, func=function)
        path = self.namespace + (name,)
        if catalogue.check_exists(*path):
            hint = "Rename one of them (change of behaviour: use the next version, as in 'name.v2')"
            self._check_same(name, catalogue._get(path), func, hint)
        if (entry_point := self._entry_point(name)) is not None:
            self._check_same(name, func, entry_point, "Rename yours, or uninstall the package")
        catalogue._set(path, func)
        return func

    def __contains__(self, name: object) -> bool:
        is_registered = catalogue.check_exists(*self.namespace, str(name))
        return is_registered or self._entry_point(str(name)) is not None

    def get(self, name: str) -> Any:
        """Return the function of a name; import this package's functions first if needed.

        RAISES (catalogue.RegistryError): If there is no such function.
        """
        if name not in self:
            registry.ensure_populated()
        return super().get(name)

    def get_entry_point(self, name: str, default: Optional[Any] = None) -> Any:
        """Return the function that an installed package registers under a name.

        RAISES (BrokenEntryPointError): If the function cannot be imported.
        """
        entry_point = self._entry_point(name)
        return default if entry_point is None else _load(entry_point, self.namespace[-1])

    def get_entry_points(self) -> Dict[str, Any]:
        """Return all functions of installed packages that can be imported."""
        found: Dict[str, Any] = {}
        for entry_point in self._get_entry_points():
            with suppress(BrokenEntryPointError):
                found[entry_point.name] = _load(entry_point, self.namespace[-1])
        return found

    def broken_entry_points(self) -> List[str]:
        """Return the errors of installed packages' functions that cannot be imported."""
        messages = []
        for entry_point in self._get_entry_points():
            try:
                _load(entry_point, self.namespace[-1])
            except BrokenEntryPointError as error:
                messages.append(str(error))
        return messages

    def check_entry_points(self) -> None:
        """Check that no installed package uses the name of another function.

        RAISES (DuplicateNameError): If a package uses the name of another function.
        """
        seen: Dict[str, Any] = {}
        for entry_point in self._get_entry_points():
            name = entry_point.name
            is_registered = catalogue.check_exists(*self.namespace, name)
            known = catalogue._get((*self.namespace, name)) if is_registered else seen.get(name)
            if known is not None:
                self._check_same(name, known, entry_point, "Uninstall one of them")
            seen[name] = entry_point

    def _check_same(self, name: str, one: Any, other: Any, hint: str) -> None:
        """Check that a function and another one, or an entry point, are the same.

        RAISES (DuplicateNameError): If they are different functions.
        """
        is_package = isinstance(other, EntryPoint)
        if not (_refers_to(other, one) if is_package else _origin(one) == _origin(other)):
            text = f"'{name}' is registered twice in '{self.namespace[-1]}'"
            raise DuplicateNameError(f"{text}: by {_origin(one)} and by {_origin(other)}. {hint}.")

    def _get_entry_points(self) -> Sequence[EntryPoint]:
        return _of_group(self.entry_point_namespace)

    def _entry_point(self, name: str) -> Optional[EntryPoint]:
        return next((ep for ep in self._get_entry_points() if ep.name == name), None)


@lru_cache(maxsize=None)
def _of_group(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of a group. Cached, because checking a config needs them a hundred
    times."""
    return tuple(catalogue.AVAILABLE_ENTRY_POINTS.select(group=group))


def import_files(package: str, folder: Iterable[str]) -> None:
    """Import all files of a package, so that they register their functions.

    package (str): The package's `__name__`.
    folder (Iterable[str]): The package's `__path__`.
    """
    for file in iter_modules(folder):
        importlib.import_module(f"{package}.{file.name}")


def _load(entry_point: EntryPoint, registry_name: str) -> Any:
    try:
        return entry_point.load()
    except DuplicateNameError:
        raise
    except Exception as error:
        raise BrokenEntryPointError(
            f"'{entry_point.name}' in '{registry_name}' comes from the installed package "
            f"'{_package(entry_point)}' ({entry_point.value}), which cannot be imported: "
            f"{error_line(error)}. Update or uninstall the package."
        ) from error


def _package(entry_point: EntryPoint) -> str:
    distribution = entry_point.dist
    return distribution.name if distribution is not None else "?"


def _refers_to(entry_point: EntryPoint, function: Any) -> bool:
    """Return whether an entry point, written ``module:name``, refers to this function, or is equal
    to this entry point. The module may be another module of the same package that imports the
    function."""
    if isinstance(function, EntryPoint):
        return entry_point.value == function.value
    module, _, name = entry_point.value.partition(":")
    defined_in = getattr(function, "__module__", None) or "?"
    is_same_package = defined_in.split(".")[0] == module.strip().split(".")[0]
    return is_same_package and getattr(function, "__qualname__", "?") == name.strip()


def _origin(given: Any) -> str:
    """Return the place of a function, which is the same if its code is imported twice, or the
    package of an entry point."""
    if isinstance(given, EntryPoint):
        return f"the installed package '{_package(given)}' ({given.value})"
    return place_of(given)


def _own_registry(name: str) -> DialogRegistry:
    return DialogRegistry(("thincdialog", name), entry_points=True)


def _of_thinc(name: str) -> DialogRegistry:
    # The namespace is Thinc's own, so that each registry finds the functions of the other.
    return DialogRegistry(("thinc", name), entry_points=True)


class _LikeThincs(type):
    """Add the methods of Thinc's registry class (``resolve``, ``has``, ...). Thinc is imported
    only when they are used, because reading data does not need it."""

    _full_class: Any = None

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if cls._full_class is None:
            from thinc.config import registry as thinc_registry

            known = cls.all_registries()
            cls._full_class = type("registry", (thinc_registry,), known)
        return getattr(cls._full_class, name)


class registry(metaclass=_LikeThincs):
    """Hold all registries; ``registry.agents("Name.v1")`` is a decorator."""

    optimizers: Any = _of_thinc("optimizers")
    schedules: Any = _of_thinc("schedules")
    layers: Any = _of_thinc("layers")
    losses: Any = _of_thinc("losses")
    initializers: Any = _of_thinc("initializers")
    datasets: Any = _of_thinc("datasets")
    ops: Any = _of_thinc("ops")

    agents: Any = _own_registry("agents")
    collates: Any = _own_registry("collates")
    teachers: Any = _own_registry("teachers")
    worlds: Any = _own_registry("worlds")
    batchers: Any = _own_registry("batchers")
    models: Any = _own_registry("models")
    tokenizers: Any = _own_registry("tokenizers")
    mutators: Any = _own_registry("mutators")
    metrics: Any = _own_registry("metrics")
    loggers: Any = _own_registry("loggers")
    callbacks: Any = _own_registry("callbacks")
    runners: Any = _own_registry("runners")

    _is_populated = False

    @classmethod
    def ensure_populated(cls) -> None:
        """Import, once, every subpackage that registers functions.

        RAISES (DuplicateNameError): If an installed package uses a name of this package, of
            Thinc or of another package.
        """
        if cls._is_populated:
            return
        importlib.import_module("thinc.api")  # Thinc fills its own registries.
        for name in DEFINING_PACKAGES:
            importlib.import_module(f"thincdialog.{name}")
        for known in cls.all_registries().values():
            known.check_entry_points()
        cls._is_populated = True

    @classmethod
    def all_registries(cls) -> Dict[str, DialogRegistry]:
        """Return registry name to registry, of Thinc and of this package."""
        return {
            name: value for name, value in vars(cls).items() if isinstance(value, DialogRegistry)
        }
