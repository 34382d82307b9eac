"""The command line: one file per command, imported when the command runs.

A command's file has ``add_arguments(parser)`` and ``run(arguments, overrides)``, parses,
and calls a plain function that Python users call, too. Until it runs, nothing imports
NumPy or Thinc.
"""
