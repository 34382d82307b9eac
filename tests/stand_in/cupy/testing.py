import numpy as np

from ._array import ndarray


def _host(x):
    return x._a if isinstance(x, ndarray) else np.asarray(x)


def assert_allclose(actual, desired, rtol=1e-7, atol=0):
    np.testing.assert_allclose(_host(actual), _host(desired), rtol, atol)


def assert_array_equal(x, y):
    np.testing.assert_array_equal(_host(x), _host(y))
