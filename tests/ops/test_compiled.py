import sys

import numpy as np
import pytest

from thincdialog.errors import MissingPackageError
from thincdialog.ops.compiled import load_kernels
from thincdialog.ops.kernels.kernel import kernel


def test_compiled_kernels_without_numba_are_an_error_that_says_what_to_install(monkeypatch):
    load_kernels.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'thincdialog\[fast\]'"):
        load_kernels("tables")


def test_compiled_kernels_run_where_nothing_can_be_kept():
    # Code that lies in no file has no folder beside it.
    code = "def double(X):\n    for i in range(X.shape[0]):\n        X[i] *= 2\n"
    names = {}
    exec(compile(code, "<nowhere>", "exec"), names)
    X = np.arange(3, dtype="f")
    kernel(names["double"])(X)
    assert X.tolist() == [0, 2, 4]
