"""Losses of scores. The gradient is that of the sum over examples; the loss is one per example."""

from . import class_softmax, label_sigmoid, ranking, watched
