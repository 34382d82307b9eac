"""A message arrives unchanged, whatever its size."""

import numpy
import pytest

from thincdialog.runners.cluster.parcel import MOST_BYTES, PART_BYTES, opened, parcel


@pytest.mark.parametrize("n", [0, 1, 1000, PART_BYTES, 300_001, MOST_BYTES])
def test_parcel_arrives_as_it_was(n):
    vector = numpy.arange(n, dtype="f")
    rows, values = numpy.arange(7), numpy.ones((7, 3), "f")
    parts = parcel((5, {2: [vector, (rows, values[:, ::2])]}))
    is_whole = vector.nbytes + rows.nbytes + 56 > MOST_BYTES
    assert (len(parts) == 1) == is_whole
    if not is_whole:
        sizes = [len(part) for part in (parts[0], *parts[2:])]
        assert max(sizes) <= PART_BYTES and sum(sizes) < 10 << 20
        expected = vector.copy()
        vector += 1  # Does not change the sent message.
        vector = expected
    number, of_slots = opened(parts)
    sent, (their_rows, their_values) = of_slots[2]
    assert number == 5
    assert numpy.array_equal(sent, vector) and sent.dtype == vector.dtype
    assert numpy.array_equal(their_rows, rows) and (their_values == 1).all()
    assert their_values.shape == (7, 2)
