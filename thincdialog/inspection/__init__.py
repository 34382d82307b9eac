"""Inspection of data and training: debug commands, surveys, profile, dry run."""
