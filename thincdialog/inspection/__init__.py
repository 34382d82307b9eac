"""Looks at data and training: debug commands, surveys, profile, dry run."""
