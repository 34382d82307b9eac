"""The words that overlap and diversity are counted in."""

import re
from functools import lru_cache
from typing import Tuple

WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=1 << 14)
def word_list(text: str) -> Tuple[str, ...]:
    """Runs of letters and digits, in lower case; of ASCII texts the same as in Google's
    rouge-score.

    text (str): A reply or a label.
    """
    return tuple(WORD.findall(text.lower()))
