"""Runs on disk: the training run itself, its folder, checkpoints, tables and sweeps."""
