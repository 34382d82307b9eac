"""Callbacks: functions of the user's that are called after every evaluation."""

from .callback import Callback
