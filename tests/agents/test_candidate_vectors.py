"""Vectors of candidates: whose are kept, and for how long."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import NumpyOps

from thincdialog.agents.candidate_vectors import CandidateVectors
from thincdialog.messages import Message

from .test_repeats import build

WIDTH = 3
ROW = 4 * WIDTH  # Bytes.
CALLS = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), max_size=8)


def vectors_of(texts):
    return np.array([[len(text), hash(text) % 97, 1] for text in texts], dtype="f")


class Counting:
    def __init__(self):
        self.texts = []

    def __call__(self, texts):
        self.texts += texts
        return vectors_of(texts)


@given(CALLS, st.integers(1, 20))
def test_candidate_vectors_are_right_and_as_many_as_wanted(calls, most):
    encode = Counting()
    known = CandidateVectors(NumpyOps(), encode, chunk=2, most_bytes=most * ROW)
    kept, largest = set(), 0
    for numbers in calls:
        texts = [str(number) for number in numbers]
        encode.texts = []
        assert (known.of(texts, 0) == vectors_of(texts)).all()
        new = set(texts) - kept
        if kept and new and len(kept | new) > most:
            kept, new = set(), set(texts)
        assert sorted(encode.texts) == sorted(new)
        kept |= new
        largest = max(largest, len(set(texts)))
        assert known._table.nbytes <= max(most, largest) * ROW and len(kept) <= max(most, largest)


def test_candidate_vectors_that_are_added_are_seldom_copied_with_all_others():
    known, tables = CandidateVectors(NumpyOps(), vectors_of), []
    for number in range(1000):
        known.of([str(number)], 0)
        if not any(known._table is table for table in tables):
            tables.append(known._table)
    assert len(tables) <= 11 and len(known._table) <= 2000


def test_candidate_vectors_of_lists_that_last_stay_till_the_weights_change():
    encode = Counting()
    known = CandidateVectors(NumpyOps(), encode, chunk=2, most_bytes=ROW)
    lasting = ["a", "b", "c"]
    for version in (0, 1):
        encode.texts = []
        for number in range(5):
            assert (known.of_lasting(lasting, version) == vectors_of(lasting)).all()
            known.of([f"passes {number}"], version)
        assert encode.texts.count("a") == 1 and len(encode.texts) == 3 + 5


def test_candidate_vectors_of_an_error_are_asked_for_again():
    def encode(texts):
        if fails:
            raise ValueError("no")
        return vectors_of(texts)

    fails, known = False, CandidateVectors(NumpyOps(), encode)
    known.of(["a"], 0)
    fails = True
    with pytest.raises(ValueError, match="no"):
        known.of(["b"], 0)
    fails = False
    assert (known.of(["b", "a"], 0) == vectors_of(["b", "a"])).all()


def test_candidate_vectors_of_a_chat_with_fresh_candidates_do_not_grow():
    agent = build("Ranker", block_repeats=False)
    known, talker = agent._vectors, agent.clone()
    width = agent.model.get_ref("candidate_encoder").get_dim("nO")
    known.most_bytes = 50 * 4 * width
    encode = known.encode
    counting = Counting()
    known.encode = lambda texts: (counting(texts), encode(texts))[1]
    for number in range(60):
        among = [f"green {number} {n}" for n in range(4)] if number % 2 else None
        talker.observe(Message(text="red", label_candidates=among))
        found = talker.act()
        talker.self_observe(found)
        assert found["text"] in (among or agent.fixed)
        assert known._table is None or known._table.nbytes <= known.most_bytes
    assert [counting.texts.count(text) for text in agent.fixed] == [1] * len(agent.fixed)
