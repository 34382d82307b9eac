"""Vectors of candidates: which are kept, and for how long."""

import copy
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.array_backends import BACKENDS, new_ops
from thincdialog.agents.candidate_vectors import CandidateVectors
from thincdialog.examples.batch import Batch
from thincdialog.messages import Message
from thincdialog.ops.choice import using_ops

from . import colours
from .colours import make
from .test_repeats import build

ROWS = [{"text": word, "labels": [f"{word} too"]} for word in ("red", "green", "blue")]
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
def test_candidate_vectors_are_right_and_within_the_limit(calls, most):
    encode = Counting()
    known = CandidateVectors(most_bytes=most * ROW)
    kept, room = set(), most
    for numbers in calls:
        texts = [str(number) for number in numbers]
        encode.texts = []
        assert (known.of(texts, encode) == vectors_of(texts)).all()
        new = set(texts) - kept
        if len(kept | new) > room:
            kept, new = set(), set(texts)
        assert sorted(encode.texts) == sorted(new)
        kept |= new
        room = max(room, len(kept))  # One call needed more room.
        assert known._table.nbytes == room * ROW


def test_candidate_vectors_are_added_without_copying_all_others():
    known, tables = CandidateVectors(), set()
    for number in range(1000):
        known.of([str(number)], vectors_of)
        tables.add(id(known._table))
    assert len(tables) == 1


def test_candidate_vectors_are_not_kept_by_copies():
    known = CandidateVectors(most_bytes=7)
    known.of(["a"], vectors_of)
    for other in (copy.deepcopy(known), pickle.loads(pickle.dumps(known))):
        assert (len(other._table), other.most_bytes) == (0, 7)


def test_candidate_vectors_of_lists_that_last_stay_till_the_weights_change():
    encode, known = Counting(), CandidateVectors(most_bytes=ROW)
    lasting = ["a", "b", "c"]
    for _ in range(2):
        known.forget()
        encode.texts = []
        for number in range(5):
            assert (known.of_lasting(lasting, encode) == vectors_of(lasting)).all()
            known.of([f"passes {number}"], encode)
        assert encode.texts.count("a") == 1 and len(encode.texts) == 3 + 5


def test_candidate_vectors_are_encoded_again_after_an_error():
    def encode(texts):
        if fails:
            raise ValueError("no")
        return vectors_of(texts)

    fails, known = False, CandidateVectors()
    known.of(["a"], encode)
    fails = True
    with pytest.raises(ValueError, match="no"):
        known.of(["b"], encode)
    fails = False
    assert (known.of(["b", "a"], encode) == vectors_of(["b", "a"])).all()


def test_candidate_vectors_of_a_chat_with_fresh_candidates_do_not_grow():
    agent = build("Ranker", block_repeats=False)
    width = agent.model.get_ref("candidate_encoder").get_dim("nO")
    known = agent._vectors
    known.most_bytes = 50 * 4 * width
    encode, counting = agent._encode_candidates, Counting()
    agent._encode_candidates = lambda texts: (counting(texts), encode(texts))[1]
    talker = agent.clone()
    for number in range(60):
        among = [f"green {number} {n}" for n in range(4)] if number % 2 else None
        talker.observe(Message(text="red", label_candidates=among))
        found = talker.act()
        talker.self_observe(found)
        assert found["text"] in (among or agent.fixed)
        assert not len(known._table) or known._table.nbytes <= known.most_bytes
    assert [counting.texts.count(text) for text in agent.fixed] == [1] * len(agent.fixed)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.slow
def test_candidate_vectors_of_50000_are_encoded_once_in_large_batches(backend):
    """They are encoded once for all batches of an evaluation."""
    with using_ops(new_ops(backend)) as ops:
        model = make("models", "BiEncoder", make("models", "BagEncoder", width=16, depth=1))
        agent = make("agents", "Ranker", model)
        agent.initialize(colours.teacher_of(ROWS), tokenizer=make("tokenizers", "Words"))
        agent.fixed = [f"word{number} red" for number in range(50_000)]
        known, sizes, replies = agent._vectors, [], agent.replies
        agent.replies = lambda texts: (sizes.append(len(texts)), replies(texts))[1]
        batch = Batch.of([Message(text="red", eval_labels=["word9 red"], episode_done=True)] * 4)
        most = 8192 if ops.device_type == "gpu" else 512

        def evaluate():
            sizes.clear()
            with agent.evaluating(), counting(ops) as counts:
                first = agent.batch_act(batch)
                n_first = counts and (counts.launches, counts.waits, counts.h2d, counts.d2h)
                again = agent.batch_act(batch)
            assert [reply["loss"] for reply in first] == [reply["loss"] for reply in again]
            if counts:
                more = (counts.launches, counts.waits, counts.h2d, counts.d2h)
                return n_first, tuple(b - a for a, b in zip(n_first, more))
            return None

        of_first, of_next = evaluate() or (None, None)
        assert sum(sizes) == 50_000 and max(sizes) == most
        assert len(sizes) == -(-50_000 // most)
        if of_first:  # On the stand-in.
            assert of_first[1] == of_next[1] == 1  # The host waits only for the scores.
        evaluate()
        assert sum(sizes) == 50_000
        # No vectors are kept during training, and other weights give other vectors.
        agent.weights[:] += 1
        evaluate()
        assert sum(sizes) == 50_000
        agent.weights_changed()
        assert not known._lasting and not len(known._table)


@contextmanager
def counting(ops):
    """Count with the stand-in for CuPy; None with another backend."""
    if not hasattr(ops.xp, "is_stand_in"):
        yield None
        return
    with ops.xp.counted() as counts:
        yield counts
