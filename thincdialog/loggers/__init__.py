"""Loggers: what a training run tells its user, one way per file."""

from . import chain, console, jsonl, mlflow, tensorboard, wandb
from .logger import Logger, Progress, Setup, Start

__all__ = ["Logger", "Progress", "Setup", "Start"]
