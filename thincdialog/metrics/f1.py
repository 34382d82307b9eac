"""Precision, recall and F1 of the words of a reply against the words of the labels."""

from collections import Counter
from typing import Sequence, Tuple

from ..registry import registry
from .example_metric import TextAverages
from .words import normalize_answer


@registry.metrics("thincdialog.F1.v1")
class F1(TextAverages):
    """Measure the word overlap of reply and label, averaged over examples; higher is better.

    Texts are split into words after ParlAI's normalisation, and a word counts as often as it
    occurs. With several labels, each of the three scores is the best over the labels.

    Reports `precision`, `recall` and `f1`, 0.0 to 1.0.
    """

    names = ("precision", "recall", "f1")

    def text_scores(self, labels: Sequence[str], text: str) -> Sequence[float]:
        """Return the best of each score over the labels."""
        return list(map(max, zip(*[overlap(text, label) for label in labels])))


def overlap(guess: str, label: str) -> Tuple[float, float, float]:
    """Return precision, recall and F1 of a guess against one label, each 0.0 to 1.0."""
    guess_words = normalize_answer(guess).split()
    label_words = normalize_answer(label).split()
    n_same = (Counter(guess_words) & Counter(label_words)).total()
    if n_same == 0:
        return 0.0, 0.0, 0.0
    n_words = len(guess_words) + len(label_words)
    return n_same / len(guess_words), n_same / len(label_words), 2 * n_same / n_words
