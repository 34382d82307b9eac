"""Losses of scores: the gradient is the sum over examples, the loss is per example."""

from . import class_softmax, label_sigmoid, ranking, watched
