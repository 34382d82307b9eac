"""Candidates drawn from the other replies of a split."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from thincdialog.teachers.candidates import CandidateSampler


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=50),
    st.integers(2, 12),
    st.integers(0, 5),
)
def test_candidates_are_different_and_hold_the_label(replies, n_candidates, seed):
    sampler = CandidateSampler(replies, n_candidates, seed)
    candidates = sampler.candidates("7/0", replies[0])
    assert len(set(candidates)) == len(candidates) == min(n_candidates, len(set(replies)))
    assert replies[0] in candidates and set(candidates) <= set(replies)
    assert candidates == CandidateSampler(replies, n_candidates, seed).candidates("7/0", replies[0])


def test_candidates_are_drawn_evenly_from_the_replies_and_the_label_placed_evenly():
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
