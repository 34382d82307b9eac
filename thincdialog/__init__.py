"""thincdialog: train dialogue models from config files, on Thinc.

    import thincdialog

    result = thincdialog.train("configs/quickstart.cfg", output="output/quickstart")
    print(thincdialog.load("output/quickstart/model-best").respond("hi"))

Everything else that is public stands in ``thincdialog.api``.
"""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported on first use: the command line's --help needs neither NumPy nor Thinc.
    if name in ("train", "evaluate", "load"):
        from . import api

        return getattr(api, name)
    raise AttributeError(f"module 'thincdialog' has no attribute '{name}'")
