"""The command line: ``python -m thincdialog``."""

import atexit
import signal
import sys

from .cli.signals import end, leave, receive_by


def main() -> int:
    """Run the command line of this process.

    RETURNS (int): Its exit code.
    """
    # Called last: then nothing but Python's own end is left, which no signal shall disturb.
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
