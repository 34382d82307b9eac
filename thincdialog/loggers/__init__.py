"""Loggers: what a training run tells its user, one way per file."""

from . import chain, console, jsonl, mlflow, tensorboard, wandb
from .logger import Finalize, LoggedRun, LogStep, Progress, Setup
