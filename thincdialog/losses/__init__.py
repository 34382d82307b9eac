"""Losses of scores. A loss returns the gradient of the sum over examples, and one loss for each
example."""

from . import class_softmax, label_sigmoid, ranking, watched
