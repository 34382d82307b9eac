"""The command line: ``python -m thincdialog``."""

import os
import sys

# Python looks for modules in the current folder first, but its files may be untrusted: a numpy.py
# there must not be imported. (If this package itself is in that folder, the user trusts it.)
_HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_FIRST = not getattr(sys.flags, "safe_path", False) and os.path.realpath(sys.path[0])
if __name__ == "__main__" and _FIRST == os.path.realpath("") != _HERE:
    del sys.path[0]

import atexit  # noqa: E402
import signal  # noqa: E402

from .cli.signals import end, leave, receive_by  # noqa: E402


def main() -> int:
    """Run the command line of this process.

    RETURNS (int): The exit code.
    """
    # This runs last: after it, only Python's own shutdown is left, which no signal should disturb.
    atexit.register(receive_by, signal.SIG_IGN)
    receive_by(leave)
    from .cli.main import main as run

    receive_by(end)
    try:
        return run()
    finally:
        receive_by(leave)


if __name__ == "__main__":
    sys.exit(main())
