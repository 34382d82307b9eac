"""All registries: Thinc's own (layers, optimizers, ...) and ours (agents, ...).

    from thincdialog.api import registry

    @registry.layers("my_layer.v1")
    def my_layer(width: int) -> Model: ...

Installed packages register through entry points, in groups named after the
registry: ``thincdialog_teachers``, ``thincdialog_agents``, ... and ``thinc_layers``,
``thinc_optimizers``, ... for the registries that Thinc has too.
"""

import importlib
from typing import Any, Callable, Dict, Optional

import catalogue
import thinc.api  # noqa: F401 - fills Thinc's own registries
from thinc.config import registry as thinc_registry

from .errors import DialogError

# The packages whose import registers everything of ours.
DEFINING_PACKAGES = (
    "ops", "layers", "losses", "schedules", "optimizers", "metrics", "data.tokenizers",
    "models", "mutators", "batchers", "teachers", "agents", "worlds", "callbacks", "loggers",
)  # fmt: skip


class DuplicateNameError(DialogError):
    """Two different functions were registered under one name."""


class DialogRegistry(catalogue.Registry):
    """A catalogue registry that refuses to overwrite a name."""

    def register(self, name: str, *, func: Optional[Any] = None) -> Callable[[Any], Any]:
        """Register a function under a name; use as a decorator or call.

        RAISES (DuplicateNameError): If another function holds the name.
        """
        if func is None:
            return lambda function: self.register(name, func=function)
        path = self.namespace + (name,)
        if catalogue.check_exists(*path):
            known = catalogue._get(path)
            if _origin(known) != _origin(func):
                raise DuplicateNameError(
                    f"'{name}' is registered twice in '{self.namespace[-1]}': "
                    f"by {_origin(known)} and by {_origin(func)}. Rename one of them "
                    "(change of behaviour: use the next version, as in 'name.v2')."
                )
        elif self.entry_points and self._entry_point(name) is not None:
            raise DuplicateNameError(
                f"'{name}' is registered twice in '{self.namespace[-1]}': by {_origin(func)} "
                f"and by the installed package of the entry point {self._entry_point(name)}. "
                "Rename yours, or uninstall the package."
            )
        catalogue._set(path, func)
        return func

    def _entry_point(self, name: str) -> Optional[Any]:
        return next((ep for ep in self._get_entry_points() if ep.name == name), None)


def _origin(function: Any) -> str:
    """File and name of a function: the same for the same code imported twice."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    if code is None:
        return f"{getattr(function, '__module__', '?')}.{name}"
    return f"{name} ({code.co_filename}:{code.co_firstlineno})"


def _ours(name: str) -> DialogRegistry:
    return DialogRegistry(("thincdialog", name), entry_points=True)


def _of_thinc(name: str) -> DialogRegistry:
    # The same namespace, so that Thinc's names are found here and ours there.
    return DialogRegistry(("thinc", name), entry_points=True)


class registry(thinc_registry):
    """All registries; ``registry.agents("Name.v1")`` is a decorator."""

    optimizers: Any = _of_thinc("optimizers")
    schedules: Any = _of_thinc("schedules")
    layers: Any = _of_thinc("layers")
    losses: Any = _of_thinc("losses")
    initializers: Any = _of_thinc("initializers")
    datasets: Any = _of_thinc("datasets")
    ops: Any = _of_thinc("ops")

    agents: Any = _ours("agents")
    teachers: Any = _ours("teachers")
    worlds: Any = _ours("worlds")
    batchers: Any = _ours("batchers")
    models: Any = _ours("models")
    tokenizers: Any = _ours("tokenizers")
    mutators: Any = _ours("mutators")
    metrics: Any = _ours("metrics")
    loggers: Any = _ours("loggers")
    callbacks: Any = _ours("callbacks")

    @classmethod
    def ensure_populated(cls) -> None:
        """Import, once, every package of ours that registers something."""
        for name in DEFINING_PACKAGES:
            importlib.import_module(f"thincdialog.{name}")

    @classmethod
    def all_registries(cls) -> Dict[str, DialogRegistry]:
        """Registry name to registry, Thinc's and ours."""
        return {
            name: value
            for klass in reversed(cls.__mro__)
            for name, value in vars(klass).items()
            if isinstance(value, DialogRegistry)
        }
