"""Numbers of strings: equal strings have the same number, whatever their hashes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.examples import numbering
from thincdialog.examples.numbering import Numbering
from thincdialog.examples.strings import Strings


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
        patch.setattr(numbering, "hash", lambda text: hash(text) % n_hashes, raising=False)
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
