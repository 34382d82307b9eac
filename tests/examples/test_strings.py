"""Strings that are held as bytes come back unchanged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.examples.strings import ChosenStrings, Strings

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
