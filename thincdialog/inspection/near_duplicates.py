"""Texts that nearly are others: most of their words are the same."""

import math
from collections import Counter, defaultdict
from itertools import chain
from typing import DefaultDict, Dict, FrozenSet, List, Sequence

# Of the words that either has, the share that both have.
NEAR = 0.8
WordSet = FrozenSet[int]


def near_duplicates(texts: Sequence[WordSet], others: Sequence[WordSet]) -> Dict[int, int]:
    """Number of each text that nearly is one of the others, to the number of that one.

    Two sets of n words that share enough have one of each one's n - NEAR n + 1 rarest words in
    common, so a text is compared only with the others that have one of these: 100,000 texts with
    100,000 others take seconds.

    texts, others (Sequence[FrozenSet[int]]): Fingerprints of the words of each; a text without
        words is near no other.
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
        found.update(zip([number], near))  # The first, if there is any.
    return found
