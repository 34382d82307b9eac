"""With --quick, every benchmark finishes in a few seconds."""

import os
import subprocess
import sys

import pytest

from tests.test_house import ROOT

BENCHMARKS = [
    path
    for path in sorted((ROOT / "tests" / "benchmarks").glob("bench_*.py"))
    if path.stem != "bench_gpu"  # Needs a GPU, see test_bench_gpu.py.
]


@pytest.mark.slow
@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmarks_run_through_with_quick(path):
    command, known = [sys.executable, str(path), "--quick"], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=known)
    assert done.returncode == 0 and done.stdout, done.stderr
