"""Texts as words: ParlAI's normalisation of answers, for scores that can be compared with ParlAI's,
and the words in which overlap and diversity are counted."""

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
    """Return a text in lower case, without ASCII punctuation and English articles, with single
    spaces.

    text (str): An answer or a label.
    RETURNS (str): The normalised text; "" if nothing is left.
    SOURCE: Miller et al. 2017 (ParlAI), https://arxiv.org/abs/1705.06476; the formula is that of
        the SQuAD evaluation, https://arxiv.org/abs/1606.05250
    """
    without = ARTICLES.sub(" ", text.lower().translate(PUNCTUATION))
    return " ".join(without.split())


@lru_cache(maxsize=1 << 14)
def word_list(text: str) -> Tuple[str, ...]:
    """Return the runs of letters and digits, in lower case; for ASCII texts, the same words as in
    Google's rouge-score.

    text (str): A reply or a label.
    """
    return tuple(WORD.findall(text.lower()))
