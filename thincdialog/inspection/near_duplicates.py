"""A search for near duplicates: texts with mostly the same words."""

import math
from collections import Counter, defaultdict
from itertools import chain
from typing import DefaultDict, Dict, FrozenSet, List, Sequence

# Minimum fraction of the words of either text that both texts have.
NEAR = 0.8
WordSet = FrozenSet[int]


def near_duplicates(texts: Sequence[WordSet], others: Sequence[WordSet]) -> Dict[int, int]:
    """Find the texts that are nearly the same as another text, and return their numbers, each with
    the number of the other text.

    If two sets of n words are near duplicates, they share at least one of the n - NEAR n + 1 rarest
    words of each. So a text is compared only with the texts that have one of its rarest words:
    comparing 100,000 texts with 100,000 others takes seconds.

    texts, others (Sequence[FrozenSet[int]]): Fingerprints of the words of each text; a text without
        words has no near duplicate.
    SOURCE: Bayardo, Ma and Srikant 2007, https://doi.org/10.1145/1242572.1242591
    """
    counts = Counter(chain.from_iterable(others))

    def rarest(words: WordSet) -> List[int]:
        n_needed = math.ceil(NEAR * len(words) - 1e-9)
        return sorted(words, key=lambda word: (counts[word], word))[: len(words) - n_needed + 1]

    index: DefaultDict[int, List[int]] = defaultdict(list)
    first = {words: number for number, words in reversed([*enumerate(others)])}
    for words, number in first.items():
        for word in rarest(words):
            index[word].append(number)
    found: Dict[int, int] = {}
    for number, words in enumerate(texts):
        near = (
            other
            for word in rarest(words)
            for other in index.get(word, ())
            if len(words & others[other]) >= NEAR * len(words | others[other]) - 1e-9
        )
        found.update(zip([number], near))  # Add the first near duplicate, if there is one.
    return found
