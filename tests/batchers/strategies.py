"""Hypothesis strategies for batchers."""

from functools import partial

import numpy as np
from hypothesis import strategies as st

from thincdialog.batchers import Batchsort, Fixed, Lengths, Padded, Words

# Mostly short, some empty, some equal, some huge.
WORDS = st.one_of(st.integers(0, 12), st.sampled_from([0, 1, 7, 7, 40]), st.integers(0, 10**6))


@st.composite
def lengths(draw, max_rows=60, words=WORDS, max_fields=3):
    """Draw rows of any lengths, with 1 to 3 fields, any of which are padded."""
    n_fields = draw(st.integers(1, max_fields))
    rows = draw(st.lists(st.tuples(*[words] * n_fields), min_size=1, max_size=max_rows))
    padded = tuple(draw(st.tuples(*[st.booleans()] * n_fields)))
    return Lengths(np.array(rows, dtype=np.int64).reshape(len(rows), n_fields), padded)


@st.composite
def batchers(draw):
    """Draw any registered batcher."""
    limit = draw(st.one_of(st.integers(1, 60), st.sampled_from([1, 2, 10**4, 10**7])))
    buffer = draw(st.integers(1, 50))
    make = draw(st.sampled_from([Fixed, Batchsort, Words, partial(Words, padding=False), Padded]))
    return make(limit) if make is Fixed else make(limit, buffer=buffer)
