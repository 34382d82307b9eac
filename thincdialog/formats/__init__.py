"""Formats: how files of episodes are read, written, and converted."""
