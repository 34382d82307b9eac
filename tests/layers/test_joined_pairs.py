"""Conversation and reply as one sequence."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import NumpyOps, Ragged

from tests.ops.array_backends import EACH_OPS
from thincdialog.layers.joined_pairs import JoinedPairs

TEXTS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=4)


def with_segments(texts, ops, segments):
    rows = [[[token, at % segments] for at, token in enumerate(text)] for text in texts]
    data = np.array([row for text in rows for row in text], dtype="int32").reshape(-1, 2)
    return rows, Ragged(ops.asarray2i(data), ops.asarray1i([len(text) for text in texts]))


def check(contexts, replies, pairs, ops):
    left, X = with_segments(contexts, ops, 3)
    right, Z = with_segments(replies, ops, 1)
    Y, backprop = JoinedPairs()((X, Z, ops.asarray2i(pairs)), False)
    expected = [
        [[token, segment + 1] for token, segment in left[row]] + right[column]
        for row, column in pairs
    ]
    assert ops.to_numpy(Y.lengths).tolist() == [len(each) for each in expected]
    assert ops.to_numpy(Y.dataXd).tolist() == [token for each in expected for token in each]
    assert backprop(Y)[0] is X


@given(TEXTS, TEXTS, st.data())
def test_pairs_are_the_tokens_of_one_and_then_of_the_other(contexts, replies, data):
    pair = st.tuples(st.integers(0, len(contexts) - 1), st.integers(0, len(replies) - 1))
    check(contexts, replies, data.draw(st.lists(pair, min_size=1, max_size=5)), NumpyOps())


@EACH_OPS
def test_pairs_are_joined_on_each_device(ops):
    check([[1, 2, 3], [], [4]], [[5, 6], []], [(0, 0), (2, 1), (1, 1), (1, 0), (0, 0)], ops)
