"""Numbers that a device returns later."""

import pytest

from tests.ops.array_backends import new_ops
from thincdialog.ops.later import Later, add_up


@pytest.mark.gpu
@pytest.mark.parametrize("values, name", [("n1n", "0"), ("11n", "2"), ("1n1", "1"), ("hh1", "2")])
def test_later_sums_name_the_first_that_is_not_finite(values, name):
    xp = new_ops(0).xp
    numbers = {"n": float("nan"), "1": 1.0, "h": 3e38}
    parts = [
        Later(xp.array([numbers[each]], dtype="f"), lambda number=number: ValueError(number))
        for number, each in enumerate(values)
    ]
    with pytest.raises(ValueError, match=name):
        float(add_up(parts))
