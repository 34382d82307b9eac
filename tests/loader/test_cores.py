"""The number of usable processors: those of the CPU affinity, up to a container's quota."""

import os

import pytest

from thincdialog.loader.cores import n_cores


@pytest.mark.parametrize(
    "text, most",
    [("max 100000", None), ("50000 100000", 1), ("100000 100000", 1), ("", None),
     ("99000000 100000", None)],
)  # fmt: skip
def test_cores_are_limited_by_a_quota(tmp_path, text, most):
    quota = tmp_path / "cpu.max"
    quota.write_text(f"{text}\n")
    assert n_cores(quota) == (most or n_cores(tmp_path / "missing"))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a system without affinity")
def test_cores_are_those_of_the_affinity(tmp_path):
    cores = os.sched_getaffinity(0)
    assert n_cores(tmp_path / "missing") == len(cores)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert n_cores() == 1
    finally:
        os.sched_setaffinity(0, cores)
