"""The command line: ``python -m thincdialog``."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
