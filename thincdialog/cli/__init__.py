"""The command line: one file per command, imported when the command runs.

A command's file has ``ARGUMENTS``, ``EXAMPLES`` and ``run(arguments)``, which calls a plain
function that Python users call, too, and returns an exit code, or None for 0. Until it
runs, nothing imports NumPy or Thinc.
"""
