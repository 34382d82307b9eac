"""The command line: ``python -m thincdialog``."""

import os
import sys

# Python looks for modules in the current folder first, which may be a stranger's: a numpy.py there
# is not ours. (Where this package itself lies there, it is the user's own.)
_HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_FIRST = not getattr(sys.flags, "safe_path", False) and os.path.realpath(sys.path[0])
if __name__ == "__main__" and _FIRST == os.path.realpath("") != _HERE:
    del sys.path[0]

from .cli.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
