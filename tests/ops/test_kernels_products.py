"""Kernels multiply matrices of any shape, also parts of wider ones, as NumPy does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.ops.compiled import load_kernels

pytest.importorskip("numba")
SIZES = st.integers(0, 37)


@settings(max_examples=60, deadline=None)
@given(n=SIZES, n_inner=SIZES, m=SIZES, left=st.integers(0, 3), seed=st.integers(0, 9))
def test_products_are_numpy_s_and_touch_nothing_else(n, n_inner, m, left, seed):
    rng = np.random.default_rng(seed)
    shapes = (n, n_inner), (n_inner, m), (n, m)
    wide = [rng.normal(size=(rows, left + columns + 2)).astype("f") for rows, columns in shapes]
    A, B, C = (X[:, left:-2] for X in wide)
    expected = wide[2].copy()
    expected[:, left:-2] += A @ B
    places = [(X.reshape(-1), left, X.shape[1]) for X in wide]
    load_kernels("products").add_product(*places, n, n_inner, m)
    np.testing.assert_allclose(wide[2], expected, rtol=1e-4, atol=1e-5)
