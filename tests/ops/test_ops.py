import os
import subprocess
import sys

import numpy as np
import pytest
from thinc.api import NumpyOps, get_current_ops
from thinc.compat import has_cupy, has_cupy_gpu

from tests.ops.array_backends import (
    BACKENDS,
    EACH_OPS,
    backend,
    in_threads,
    new_ops,
)
from thincdialog.errors import DialogError
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.ops.devices import on_device
from thincdialog.ops.dialog_cupy_ops import DialogCupyOps
from thincdialog.ops.dialog_ops import exact_products


def masks(ops, *position, n=3):
    ops.seed(*position)
    return [ops.to_numpy(ops.get_dropout_mask((5, 7), 0.4)).tobytes() for _ in range(n)]


@pytest.mark.parametrize("gpu_id", BACKENDS)
def test_ops_dropout_is_a_function_of_seed_step_and_microbatch(gpu_id):
    with backend(gpu_id) as ops:
        here = masks(ops, 1, 2, 3)
        others = [(0, 2, 3), (1, 0, 3), (1, 2, 0), (1, 3, 2), (2, 1, 3), (3, 2, 1)]
        assert all(not set(masks(ops, *other)) & set(here) for other in others)
        ops.get_dropout_mask((11,), 0.5)
        assert masks(ops, 1, 2, 3) == here
        assert masks(new_ops(gpu_id), 1, 2, 3) == here


def test_ops_dropout_leaves_the_global_generator_alone():
    np.random.seed(5)
    wanted = np.random.random(4).tolist()
    np.random.seed(5)
    get_dialog_ops().get_dropout_mask((100,), 0.5)
    assert np.random.random(4).tolist() == wanted


@EACH_OPS
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_ops_dropout_rate_and_expected_value(rate, ops):
    mask = ops.to_numpy(ops.get_dropout_mask((400, 500), rate))
    assert mask.dtype == np.float32
    kept = mask > 0
    np.testing.assert_allclose(mask[kept], 1 / (1 - rate), rtol=1e-4)
    # Five standard deviations of the fraction kept among 200,000 cells.
    assert abs(kept.mean() - (1 - rate)) < 5 * np.sqrt(rate * (1 - rate) / kept.size)


@EACH_OPS
def test_ops_dropout_limits(ops):
    for rate, value in [(None, 1), (0.0, 1), (-1.0, 1), (1.0, 0), (2.0, 0)]:
        mask = ops.to_numpy(ops.get_dropout_mask((2, 2), rate))
        assert mask.tolist() == [[value] * 2] * 2


@EACH_OPS
@pytest.mark.parametrize("trans1, trans2", [(False, True), (True, False), (False, False)])
def test_ops_exact_products_do_not_depend_on_the_other_rows(trans1, trans2, ops):
    rng = np.random.default_rng(0)
    x = ops.asarray2f(rng.normal(size=(101, 77)).astype("f"))
    y = ops.asarray2f(rng.normal(size=(77, 33)).astype("f"))

    def product(rows):
        left = ops.xp.ascontiguousarray(rows.T) if trans1 else rows
        right = ops.xp.ascontiguousarray(y.T) if trans2 else y
        return ops.to_numpy(ops.gemm(left, right, trans1=trans1, trans2=trans2))

    fast = product(x)
    with exact_products(ops):
        exact = product(x)
        for first, last in ((0, 1), (3, 8), (50, 101)):
            assert product(x[first:last]).tobytes() == exact[first:last].tobytes()
    assert exact.dtype == np.float32
    np.testing.assert_allclose(exact, fast, rtol=1e-4, atol=1e-5)
    assert product(x).tobytes() == fast.tobytes()


@pytest.mark.parametrize("name", [-1, "fast"])
def test_ops_product_equals_stock_ops(name):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 4)).astype("f"), rng.normal(size=(4, 5)).astype("f")
    ours, stock = new_ops(name), NumpyOps()
    assert not ours.use_blis
    with exact_products(stock) as nothing:  # Stock ops are not changed.
        assert nothing is None
    for trans1, trans2 in [(False, False), (True, False), (False, True), (True, True)]:
        a, b = (x.T.copy() if trans1 else x), (y.T.copy() if trans2 else y)
        turned, out = {"trans1": trans1, "trans2": trans2}, np.empty((6, 5), dtype="f")
        one = ours.gemm(a, b, **turned)
        np.testing.assert_allclose(one, stock.gemm(a, b, **turned), rtol=1e-4, atol=1e-6)
        assert ours.gemm(a, b, out=out, **turned) is out and (out == one).all()


@pytest.mark.slow
def test_ops_use_one_blas_thread():
    # In a separate process: tests that import SciPy load a second BLAS.
    code = (
        "from thincdialog.ops.choice import get_dialog_ops\n"
        "from threadpoolctl import threadpool_info\n"
        "get_dialog_ops()\n"
        "blas = [found for found in threadpool_info() if found['user_api'] == 'blas']\n"
        "print(len(blas), *(found['num_threads'] for found in blas))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    n_found, *threads = map(int, done.stdout.split())
    assert n_found and set(threads) == {1}


def test_ops_using_ops_restores_the_former():
    before = get_current_ops()
    ops = get_dialog_ops()
    with pytest.raises(KeyError), using_ops(ops) as current:
        assert current is ops and get_current_ops() is ops
        raise KeyError
    assert get_current_ops() is before


@pytest.mark.skipif(has_cupy_gpu, reason="this machine has a GPU")
def test_ops_gpu_that_is_missing_is_one_clear_error():
    fix = "does not work here" if has_cupy else "pip install 'thincdialog"
    with pytest.raises(DialogError, match=fix) as raised:
        get_dialog_ops(0)
    assert "gpu_id = 0" in str(raised.value) and "-1 for the CPU" in str(raised.value)


@pytest.mark.skipif(has_cupy, reason="CuPy works here")
def test_ops_cupy_that_does_not_work_is_not_said_to_be_missing(tmp_path, monkeypatch):
    (tmp_path / "cupy").mkdir()
    text = "raise ImportError('libcublas.so.12: cannot open shared object file')"
    (tmp_path / "cupy" / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    found = "is installed, but does not work here: libcublas.so.12.*'cupy-cuda12x.ctk.'"
    with pytest.raises(DialogError, match=found):
        get_dialog_ops(0)


@pytest.mark.gpu
def test_ops_make_their_device_current_in_any_thread():
    import cupy

    found = []

    def work(device):
        with on_device(DialogCupyOps(device_id=device)):
            found.append((device, cupy.cuda.runtime.getDevice()))

    in_threads(work, range(cupy.cuda.runtime.getDeviceCount()))
    assert found and all(device == current for device, current in found)


@pytest.mark.gpu
def test_ops_gpu_number_out_of_range():
    with pytest.raises(DialogError, match="gpu_id = 99, but this machine has"):
        get_dialog_ops(99)
