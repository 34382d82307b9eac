"""Formats: readers and writers of files of episodes, and the conversion between them."""
