import subprocess
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


def test_compiled_kernels_follow_changes_in_the_kernels_that_they_call(tmp_path):
    inner, outer = tmp_path / "inner.py", tmp_path / "outer.py"
    head = "from thincdialog.ops.kernels.kernel import kernel\n"
    outer.write_text(
        f"{head}from inner import inner\n@kernel\ndef outer(x):\n    return inner(x) + 1\n"
    )
    shown = []
    for factor in (2, 2, 30):
        if not shown or factor == 30:
            inner.write_text(f"{head}@kernel\ndef inner(x):\n    return {factor} * x\n")
        command = "from outer import outer; hits = outer(10), sum(outer.stats.cache_hits.values())"
        code = f"{command}; print(*hits)"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        shown.append(tuple(map(int, done.stdout.split())))
    # The second run finds what the first one kept; the third must not use it.
    assert shown == [(21, 0), (21, 1), (301, 0)]
