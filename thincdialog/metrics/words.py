"""Texts as words: ParlAI's normalisation of answers, so that scores can be compared with its
own, and the words that overlap and diversity are counted in."""

import re
import string
from functools import lru_cache
from typing import Tuple

WORD = re.compile(r"[^\W_]+")
ARTICLES = re.compile(r"\b(a|an|the)\b")
# Each ASCII punctuation mark to a space.
PUNCTUATION = str.maketrans(string.punctuation, " " * len(string.punctuation))


@lru_cache(maxsize=1 << 16)
def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces.

    text (str): An answer or a label.
    RETURNS (str): The normalised text; "" if nothing is left.
    SOURCE: Miller et al. 2017 (ParlAI), https://arxiv.org/abs/1705.06476; the
        formula is that of the SQuAD evaluation, https://arxiv.org/abs/1606.05250
    """
    without = ARTICLES.sub(" ", text.lower().translate(PUNCTUATION))
    return " ".join(without.split())


@lru_cache(maxsize=1 << 14)
def word_list(text: str) -> Tuple[str, ...]:
    """Runs of letters and digits, in lower case: those of Google's rouge-score, in ASCII texts.

    text (str): A reply or a label.
    """
    return tuple(WORD.findall(text.lower()))
