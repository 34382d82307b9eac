"""Callbacks: custom functions that are called after every evaluation."""

from .callback import Callback
