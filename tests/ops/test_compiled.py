import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

from thincdialog.ops.kernels.kernel import _stamp, kernel


def test_compiled_kernels_run_without_a_cache():
    # Code that is in no file has no folder for a cache.
    code = "def double(X):\n    for i in range(X.shape[0]):\n        X[i] *= 2\n"
    names = {}
    exec(compile(code, "<nowhere>", "exec"), names)
    X = np.arange(3, dtype="f")
    kernel(names["double"])(X)
    assert X.tolist() == [0, 2, 4]


def test_compiled_kernels_follow_changes_in_the_kernels_that_they_call(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    head = "from thincdialog.ops.kernels.kernel import _stamp, kernel\n@kernel\n"
    outer = "def outer(x):\n    return inner(x) + 1\n"
    (tmp_path / "outer.py").write_text(f"from inner import inner\n{head}{outer}")
    shown = []
    for factor in (2, 2, 30):
        if not shown or factor == 30:
            code = f"def inner(x):\n    return {factor} * x\n"
            (tmp_path / "inner.py").write_text(f"{head}{code}")
        # As in a new process.
        _stamp.cache_clear()
        for name in ("inner", "outer"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        kernels = importlib.import_module("outer")
        shown.append((kernels.outer(10), sum(kernels.outer.stats.cache_hits.values())))
    # The second import finds the cache of the first one; the third must not use it.
    assert shown == [(21, 0), (21, 1), (301, 0)]


def test_compiled_kernels_of_types_that_no_longer_exist_are_compiled_again(tmp_path, monkeypatch):
    """As after an update, which leaves the cache in its place."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "first.py").write_text(
        "from thincdialog.ops.kernels.kernel import kernel\n"
        "@kernel\ndef first(pair):\n    return pair[0]\n"
    )
    for name in ("Pair", "Couple"):
        code = f"from typing import NamedTuple\nclass {name}(NamedTuple):\n    a: int\n    b: int\n"
        (tmp_path / "pairs.py").write_text(code)
        _stamp.cache_clear()
        for module in ("pairs", "kernels.first", "kernels"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        pair = getattr(importlib.import_module("pairs"), name)(7, 8)
        assert importlib.import_module("kernels.first").first(pair) == 7


TRAIN = """
import hashlib, io
from pathlib import Path
from thincdialog.api import train
import numpy
text = Path("configs/fasttext.cfg").read_text()
task = text[text.index("[tasks."):text.index("[tokenizer]")]
coffee = '[tasks.coffee]\\n@teachers = "thincdialog.CoffeeOrder.v1"\\nn_train = 60\\n\\n'
changes = {"training.max_steps": 40, "runner.workers": 1}
train(text.replace(task, coffee), output=OUT, overrides=changes,
      stdout=io.StringIO(), stderr=io.StringIO())
weights = numpy.load(Path(OUT) / "model-last" / "weights.npy")
print(hashlib.sha256(weights.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_compiled_kernels_give_the_same_bits_where_they_are_compiled_and_where_they_are_kept(
    tmp_path, root
):
    shown = [
        subprocess.run(
            [sys.executable, "-c", f"OUT = {str(tmp_path / str(number))!r}\n{TRAIN}"],
            cwd=root, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
            capture_output=True, text=True, check=True,
        ).stdout
        for number in range(2)
    ]  # fmt: skip
    assert shown[0] == shown[1] != ""
