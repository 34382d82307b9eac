"""Errors of the command line itself."""

from ..errors import DialogError


class UsageError(DialogError):
    """The command line cannot be understood."""

    exit_code = 2
