"""Pictures of runs, on the terminal and in files."""
