"""Loggers, which report on a training run; each file has one kind."""

from . import chain, console, jsonl, mlflow, tensorboard, wandb
from .logger import Finalize, LoggedRun, LogStep, Progress, Setup
