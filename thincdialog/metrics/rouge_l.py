"""ROUGE-L: the longest common subsequence of the words of reply and label."""

from typing import Dict, Sequence, Tuple

from ..registry import registry
from .example_metric import TextAverages
from .words import word_list


@registry.metrics("thincdialog.RougeL.v1")
class RougeL(TextAverages):
    """Measure the fraction of words that reply and label have in common in the same order, with
    gaps allowed, averaged over examples; higher is better.

    Words are runs of letters and digits in lower case, without stemming. With several
    labels, all three scores are those against the label with the best F1.

    Reports `rouge_l` (the F1), `rouge_l_precision` and `rouge_l_recall`, 0.0 to 1.0.

    SOURCE: Lin 2004, https://aclanthology.org/W04-1013, section 3.1, with beta = 1
    """

    names = ("rouge_l", "rouge_l_precision", "rouge_l_recall")

    def text_scores(self, labels: Sequence[str], text: str) -> Sequence[float]:
        """Return the scores against the best label."""
        words = word_list(text)
        if not words:
            return ()
        return max((rouge_l(words, word_list(label)) for label in labels), key=lambda s: s[0])


def rouge_l(guess: Sequence[str], label: Sequence[str]) -> Tuple[float, float, float]:
    """Return F1, precision and recall of the words of a guess, each 0.0 to 1.0."""
    n_same = n_in_common(guess, label)
    if n_same == 0:
        return 0.0, 0.0, 0.0
    n_words = len(guess) + len(label)
    return 2 * n_same / n_words, n_same / len(guess), n_same / len(label)


def n_in_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    A row of the usual table is one integer with a bit for each word of ``left``, so that a
    step costs an addition instead of a loop.

    SOURCE: Hyyrö 2004, Bit-parallel LCS-length computation revisited
    """
    places: Dict[str, int] = {}
    for index, word in enumerate(left):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(left)) - 1
    row = full
    for word in right:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & full
    return len(left) - row.bit_count()
