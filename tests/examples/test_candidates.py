"""Candidates drawn from the other replies of a split."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.examples import Batch, MemoryStore
from thincdialog.examples.candidates import CandidateSampler, WithCandidates
from thincdialog.messages import Message


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=50),
    st.integers(2, 12),
    st.integers(0, 5),
)
def test_candidates_are_distinct_and_include_the_label(replies, n_candidates, seed):
    sampler = CandidateSampler(replies, n_candidates, seed)
    candidates = sampler.candidates("7/0", replies[0])
    assert len(set(candidates)) == len(candidates) == min(n_candidates, len(set(replies)))
    assert replies[0] in candidates and set(candidates) <= set(replies)
    assert candidates == CandidateSampler(replies, n_candidates, seed).candidates("7/0", replies[0])


def test_candidates_are_drawn_evenly_and_every_position_of_the_label_is_equally_likely():
    replies = [f"r{number}" for number in range(50)] + ["often"] * 50
    sampler = CandidateSampler(replies, 5, 0)
    drawn = [sampler.candidates(f"{number}/0", "r0") for number in range(4000)]
    places = Counter(candidates.index("r0") for candidates in drawn)
    assert all(700 < places[place] < 900 for place in range(5))
    counts = Counter(reply for candidates in drawn for reply in candidates)
    assert counts["often"] > 3500
    assert all(160 < counts[f"r{number}"] < 420 for number in range(1, 50))


def test_candidates_are_found_among_many_equal_replies():
    replies = ["same"] * 100000 + [f"rare {number}" for number in range(9)]
    candidates = CandidateSampler(replies, 10, 0).candidates("1/0", "same")
    assert sorted(candidates) == sorted(set(replies))


def with_candidates(n_candidates=4):
    rows = [Message(id=str(n), text="a", labels=[f"r{n}"]) for n in range(30)]
    rows[3]["label_candidates"] = ["r3", "x"]
    del rows[5]["labels"]
    store = MemoryStore()
    for row in rows:
        store.append([row])
    sampler = CandidateSampler([f"r{n}" for n in range(30)], n_candidates, 0)
    return WithCandidates(store, sampler)


def test_candidates_of_a_store_are_drawn_for_rows_without_any():
    shown = with_candidates()
    found = shown.cells("label_candidates", np.arange(30))
    assert found[3] == ["r3", "x"] and found[5] is None
    assert all(len(set(each)) == 4 for number, each in enumerate(found) if number not in (3, 5))
    assert [shown.message(row).get("label_candidates") for row in range(30)] == found
    batch = Batch(shown, np.array([7, 5]), training=False)
    assert batch[0]["label_candidates"] == found[7] and batch[0]["eval_labels"] == ["r7"]
    assert batch.column("label_candidates") == [found[7], None]
    # Everything else comes from the store.
    assert shown.label_texts == shown.parts[0].label_texts and shown.n_examples == 30
    assert shown.cells("text", np.arange(2)) == ["a", "a"]
    assert shown.cells("mood", np.arange(2)) == [None, None]


def test_candidates_are_the_same_in_threads():
    shown = with_candidates()
    expected = with_candidates().cells("label_candidates", np.arange(30))
    with ThreadPoolExecutor(8) as pool:
        rows = [np.array([n % 30]) for n in range(400)]
        found = list(pool.map(lambda row: shown.cells("label_candidates", row)[0], rows))
    assert found == [expected[n % 30] for n in range(400)]
