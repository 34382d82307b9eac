"""ParlAI's normalisation of answers, so that scores can be compared with its own."""

import re
from functools import lru_cache

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = re.compile(r"[!\"#$%&()*+,\-./:;<=>?@\[\]\\^`{|}~_']")


@lru_cache(maxsize=1 << 16)
def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces.

    text (str): An answer or a label.
    RETURNS (str): The normalised text; "" if nothing is left.
    SOURCE: Miller et al. 2017 (ParlAI), https://arxiv.org/abs/1705.06476; the
        formula is that of the SQuAD evaluation, https://arxiv.org/abs/1606.05250
    """
    without = ARTICLES.sub(" ", PUNCTUATION.sub(" ", text.lower()))
    return " ".join(without.split())
