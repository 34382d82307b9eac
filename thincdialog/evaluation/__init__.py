"""Evaluation: scores, intervals, comparison of models, predictions."""
