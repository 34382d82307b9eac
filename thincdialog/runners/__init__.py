"""Runners: who makes the steps of training, one process or many."""

from .alone import Alone

__all__ = ["Alone"]
