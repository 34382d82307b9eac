"""The command line: one file per command, imported when the command runs.

A command's file has ``ARGUMENTS``, ``EXAMPLES`` and ``run(arguments)``. A command that takes
overrides gets the arguments ``COMMON``, too. ``run`` calls a plain function, which Python users can
call too, and returns an exit code, or None for 0. NumPy and Thinc are imported only when ``run`` is
called.
"""
