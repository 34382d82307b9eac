"""Texts that are nearly equal, checked by comparing all with all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.inspection.near_duplicates import NEAR, near_duplicates

SETS = st.lists(st.frozensets(st.integers(0, 12), max_size=12), max_size=12)


def is_near(words, other):
    return bool(words) and len(words & other) / len(words | other) >= NEAR


@given(SETS, SETS)
def test_near_duplicates_are_those_of_a_comparison_of_all_with_all(texts, others):
    found = near_duplicates(texts, others)
    near = [n for n, words in enumerate(texts) if any(is_near(words, each) for each in others)]
    assert list(found) == near and all(is_near(texts[n], others[m]) for n, m in found.items())


@pytest.mark.slow
def test_near_duplicates_of_many_texts():
    rng = np.random.default_rng(0)
    others = [frozenset(rng.zipf(1.3, 10).tolist()) for _ in range(20_000)]
    texts = [other | {-1} for other in others[:100] if len(other) > 3]
    assert list(near_duplicates(texts, others)) == list(range(len(texts)))
