"""The signals that end a program."""

import signal

# Windows has no SIGHUP.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
# As in shells, the exit code is this number plus the number of the signal that ended the process.
BY_SIGNAL = 128


class EndedBySignal(KeyboardInterrupt):
    """Raised by signal handlers to end the current work.

    number (int): Number of the signal.
    """

    def __init__(self, number: int, *args: str):
        super().__init__(*args)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that shells give to a process that a signal ended."""
        return BY_SIGNAL + self.number
