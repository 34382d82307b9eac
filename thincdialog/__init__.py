"""thincdialog: train dialogue models from config files, on Thinc.

    import thincdialog

    result = thincdialog.train("configs/quickstart.cfg", output="output/quickstart")
    print(thincdialog.load("output/quickstart/model-best").respond("hi"))

``thincdialog.api`` has the rest of the public API.
"""

# Under ``python -m``, the current folder is still first on the import path here, and its files may
# be untrusted. So import only modules that Python itself has already imported.
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from .api import evaluate, load, predict, train

__version__ = "0.1.0"
__all__ = ["__version__", "api", "evaluate", "load", "predict", "train"]  # noqa: F822


def __getattr__(name: str) -> "Any":
    # Imported on first use: the command line's --help needs neither NumPy nor Thinc.
    if name in __all__:
        api = import_module(".api", __name__)
        return api if name == "api" else getattr(api, name)
    raise AttributeError(f"module 'thincdialog' has no attribute '{name}'")


def __dir__() -> "List[str]":
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
