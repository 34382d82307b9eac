"""Evaluation: scores and their intervals, comparison of models, and predictions."""
