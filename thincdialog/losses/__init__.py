"""Losses of scores: the gradient is the sum over examples, the loss is per example."""

from typing import Callable

from ..registry import registry
from . import class_softmax, label_sigmoid, ranking

registry.losses.makes(Callable)
