import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.optimizers.moments import least_second_moment

decays = st.floats(0.0, 0.999)


@given(decays, st.floats(0.001, 0.9999), st.lists(st.floats(-100, 100), min_size=1, max_size=60))
@settings(max_examples=300)
def test_second_moments_of_any_gradients_are_large_enough(b1, b2, gradients):
    mom1 = mom2 = 0.0
    for n, g in enumerate(gradients, start=1):
        mom1, mom2 = b1 * mom1 + (1 - b1) * g, b2 * mom2 + (1 - b2) * g * g
        assert mom2 >= least_second_moment(b1, b2, n) * mom1 * mom1 * (1 - 1e-9)


@pytest.mark.parametrize("b1, b2", [(0.9, 0.999), (0.0, 0.5), (0.9, 0.81), (0.95, 0.8)])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_second_moments_can_reach_their_limit(b1, b2, n):
    """Gradients like the ratio of their weights in the two moments reach the limit."""
    ages = np.arange(n)[::-1]
    g = (b1 / b2) ** ages
    mom1 = ((1 - b1) * b1**ages * g).sum()
    mom2 = ((1 - b2) * b2**ages * g * g).sum()
    assert least_second_moment(b1, b2, n) == pytest.approx(mom2 / mom1**2, rel=1e-6)


@pytest.mark.parametrize("n", [1, 10**4, 10**8, 10**15])
@pytest.mark.parametrize("b1, b2", [(0.9, 0.8), (0.99, 0.9), (0.9, 0.81), (0.999, 0.999)])
def test_any_number_of_updates_has_a_limit(b1, b2, n):
    assert 0.0 <= least_second_moment(b1, b2, n) <= (1 - b2) / (1 - b1) ** 2


@pytest.mark.parametrize("b1, b2", [(0.9, 0.0), (0.9, 1.0), (1.0, 0.999)])
def test_decays_that_forget_all_or_nothing_set_no_limit(b1, b2):
    assert least_second_moment(b1, b2, 5) == 0.0
