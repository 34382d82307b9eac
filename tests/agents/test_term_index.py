from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.agents.term_index import TermIndex, count_terms

TOKENS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=40)


@given(TOKENS)
def test_count_terms_counts_pairs(tokens):
    owners, terms = np.array(tokens, dtype=np.int32).reshape(-1, 2).T
    counted = list(zip(*(part.tolist() for part in count_terms(terms, owners))))
    assert counted == sorted((*pair, n) for pair, n in Counter(tokens).items())


@given(TOKENS, st.dictionaries(st.integers(0, 12), st.integers(1, 4)))
def test_term_index_finds_the_best_document(tokens, query):
    owners, terms = np.array(tokens, dtype=np.int32).reshape(-1, 2).T
    documents, found, counts = count_terms(terms, owners)
    index = TermIndex.build(documents, found, counts.astype(np.float32), 6)
    pairs = Counter(tokens)
    scores = [sum(pairs[doc, term] * w for term, w in query.items()) for doc in range(6)]
    expected = scores.index(max(scores)) if max(scores) else -1
    asked = np.array(list(query), dtype=np.int64)
    weights = np.array(list(query.values()), dtype=np.float32)
    assert index.best(asked, weights) == expected
    again = TermIndex.from_arrays(index.to_arrays())
    assert again.best(asked, weights) == expected
