"""Accuracy: the fraction of replies that are one of the labels."""

from typing import Optional, Sequence, Tuple

from ..registry import registry
from .example_metric import TextAverages
from .words import normalize_answer


@registry.metrics("thincdialog.Accuracy.v1")
class Accuracy(TextAverages):
    """Measure the fraction of examples whose reply is one of the labels; higher is better.

    Reports `accuracy`, 0.0 to 1.0.

    normalize (Optional[bool]): true compares texts after ParlAI's normalisation (which ignores
        case, ASCII punctuation and English articles); false compares them unchanged. null
        normalises, except in an experiment whose agent replies with classes, because the names of
        classes may differ only in punctuation.
    """

    names = ("accuracy",)

    def __init__(self, normalize: Optional[bool] = None):
        self.normalize = normalize
        self.reset()

    def text_scores(self, labels: Sequence[str], text: str) -> Tuple[bool]:
        """Return whether the reply is one of the labels."""
        if text in labels:
            return (True,)
        if self.normalize is False:
            return (False,)
        guess = normalize_answer(text)
        return (any(normalize_answer(label) == guess for label in labels),)
