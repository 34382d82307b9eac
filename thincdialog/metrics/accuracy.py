"""Accuracy: the share of replies that are one of the labels."""

from typing import Optional, Sequence, Tuple

from ..registry import registry
from .example_metric import TextAverages
from .words import normalize_answer


@registry.metrics("thincdialog.Accuracy.v1")
class Accuracy(TextAverages):
    """Share of examples whose reply is one of the labels; higher is better.

    Reports `accuracy`, 0.0 to 1.0.

    normalize (Optional[bool]): Compare after ParlAI's normalisation (case, ASCII punctuation
        and English articles do not count); false compares the texts as they are. null
        normalises, except in an experiment whose agent replies with classes: names of classes
        may differ in punctuation only.
    """

    names = ("accuracy",)

    def __init__(self, normalize: Optional[bool] = None):
        self.normalize = normalize
        self.reset()

    def text_scores(self, labels: Sequence[str], text: str) -> Tuple[bool]:
        """Whether the reply is one of the labels."""
        if text in labels:
            return (True,)
        if self.normalize is False:
            return (False,)
        guess = normalize_answer(text)
        return (any(normalize_answer(label) == guess for label in labels),)
