"""Strings that are held as bytes come back unchanged, and equal strings have the same number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.examples import strings as module
from thincdialog.examples.strings import ChosenStrings, Numbering, Strings

ANY = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=6)


@given(st.lists(st.lists(ANY)), st.data())
def test_strings_come_back_unchanged(parts, data):
    strings, other = Strings(), Strings()
    for part in parts:
        strings.extend(part)
    texts = [text for part in parts for text in part]
    assert [strings[number] for number in range(len(strings))] == texts
    numbers = data.draw(st.lists(st.integers(0, len(texts) - 1))) if texts else []
    chosen = ChosenStrings(strings, np.array(numbers, dtype=np.int64))
    assert list(chosen) == strings.take(chosen.numbers) == [texts[n] for n in chosen.numbers]
    assert chosen[1:] == list(chosen)[1:] and len(chosen) == len(list(chosen))
    first = data.draw(st.integers(0, len(texts)))
    last = data.draw(st.integers(first, len(texts)))
    other.extend(["before"])
    other.extend_encoded(strings.slices(np.arange(first, last)))
    assert [other[number] for number in range(len(other))] == ["before", *texts[first:last]]


@settings(deadline=None)
@given(
    parts=st.lists(st.lists(st.text(max_size=2), max_size=9), max_size=6),
    forgets=st.booleans(),
    n_hashes=st.sampled_from([1, 2, 3, 1 << 62]),
    data=st.data(),
)
def test_numbers_are_the_same_as_with_a_dictionary(parts, forgets, n_hashes, data):
    with pytest.MonkeyPatch.context() as patch:
        # Few hashes, so that different strings share one.
        patch.setattr(module, "hash", lambda text: hash(text) % n_hashes, raising=False)
        strings, expected = Strings(), {}
        numbers = Numbering(strings)
        for texts in parts:
            for text, number in zip(texts, numbers(texts).tolist()):
                assert expected.setdefault(text, number) == number
            if forgets:
                numbers.forget_recent()
            if data.draw(st.booleans()):
                numbers = Numbering(strings)
        assert sorted(expected.values()) == list(range(len(strings)))
        assert all(strings[number] == text for text, number in expected.items())
