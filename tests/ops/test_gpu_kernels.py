"""The kernels of a GPU: their very source, on whatever runs it, beside NumPy."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from thinc.api import Ragged

from tests.ops.array_backends import backend, new_ops
from thincdialog.layers.transformer_block import TransformerBlock
from thincdialog.losses.class_softmax import ClassSoftmax
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.ops.attention import attend
from thincdialog.ops.gpu import kernels
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.row_sparse import Part, step_on_device


@pytest.fixture(params=[1, 7, 128])
def xp(request, monkeypatch):
    """CuPy; on the stand-in with so many threads in a block."""
    cupy = pytest.importorskip("cupy")
    if hasattr(cupy, "is_stand_in"):
        monkeypatch.setattr(cupy._kernels, "threads_of_a_block", request.param)
    return cupy


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("f")


def close(device, host):
    np.testing.assert_allclose(device.get(), host, rtol=2e-5, atol=2e-6)


@pytest.mark.gpu
def test_gpu_kernels_sum_and_pool_groups(xp):
    table, ids = drawn(9, 33), np.array([3, 3, 0, 8, 1, 1, 1], dtype="i")
    lengths, weights = np.array([2, 0, 4, 1]), drawn(9)
    starts = np.concatenate(([0], lengths.cumsum())).astype("i")
    factors, on = drawn(4), [xp.asarray(each) for each in (table, ids, starts)]
    own = np.split(weights[ids, None] * table[ids], starts[1:-1])
    wanted = factors[:, None] * np.stack([each.sum(axis=0) for each in own])
    more = {"factors": xp.asarray(factors), "weights": xp.asarray(weights)}
    close(kernels.sum_rows(*on, **more), wanted)
    X, full = drawn(7, 5), xp.asarray(np.array([0, 3, 7], dtype="i"))
    highest, which = kernels.max_rows(xp.asarray(X), full)
    close(highest, np.stack([X[:3].max(axis=0), X[3:].max(axis=0)]))
    dX = kernels.backprop_max_rows(highest, which, full, 7)
    mask = np.concatenate([X[:3] == X[:3].max(axis=0), X[3:] == X[3:].max(axis=0)])
    close(dX, X * mask)


@pytest.mark.gpu
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gpu_kernels_losses_are_those_of_numpy(smoothing, xp):
    Z, targets, weights = 5 * drawn(6, 41), np.array([0, 40, 3, 3, 7, 9]), abs(drawn(41))
    loss = ClassSoftmax(smoothing)
    wanted = loss(Z, targets, weights)
    found = loss(*map(xp.asarray, (Z, targets, weights)))
    allowed = drawn(6, 41) > 0
    wanted += RankingSoftmax()(Z, targets, allowed)
    found += RankingSoftmax()(*map(xp.asarray, (Z, targets, allowed)))
    for each, of_numpy in zip(found, wanted):
        close(each, of_numpy)
    on_device, settings = xp.asarray(Z), {"is_used_up": True}
    found = loss.on_device(on_device, *map(xp.asarray, (targets, weights)), **settings)
    assert found[0] is on_device
    for each, of_numpy in zip(found[:2], wanted):
        close(each, of_numpy)
    assert found[2].tolist() == Z.argmax(axis=1).tolist()
    n_right = (Z.argmax(axis=1) == targets).sum()
    close(found[3], np.array([n_right, wanted[1].sum()], dtype="f"))


@pytest.mark.gpu
@pytest.mark.parametrize("spoilt", [False, True])
def test_gpu_kernels_step_equals_numpy_and_changes_nothing_if_it_is_not_finite(spoilt, xp, ops):
    W, dW, rows = drawn(50), drawn(3, 5), np.array([1, 4, 9])
    if spoilt:
        dW[1, 1] = np.nan
    found = []
    for module in (np, xp):
        optimizer = LazyAdam(0.1, L2=0.01, grad_clip=1.0)
        on = module.asarray
        part = Part(0, 50, 5, on(rows.astype("i")), on(dW))
        values, key = on(W.copy()), (0, "W")
        if module is np and not spoilt:
            scale = 0.5 * optimizer.clip_scale(float(np.linalg.norm(0.5 * dW)))
            optimizer.update_parts(key, values, values, [part], scale=scale)
        elif module is xp:
            norm = step_on_device(optimizer, key, values, values, [part], 0.5, ops)
        found.append(values)
    close(found[1], found[0])
    assert np.isfinite(norm.get()).all() != spoilt


@pytest.mark.gpu
def test_gpu_kernels_dropout_is_the_same_in_blocks_of_any_size(xp):
    mask = kernels.dropout_mask((1001, 3), kernels.Mask(0.3, 2**63 + 5, 2)).get()
    assert set(np.unique(mask).tolist()) == {0.0, float(np.float32(1 / (1 - 0.3)))}
    assert abs((mask == 0).mean() - 0.3) < 0.03
    # By the paper's reference: counter and key of zeros give 6627e8d5 first.
    first = kernels.dropout_mask((4,), kernels.Mask(0x6627E8D5 / 2**32)).get()
    assert first[0] > 0
    assert kernels.dropout_mask((4,), kernels.Mask(0x6627E8D6 / 2**32)).get()[0] == 0


@pytest.mark.gpu
@pytest.mark.parametrize("n_heads", [1, 3])
def test_gpu_kernels_attend_within_sequences_and_repeat_to_the_bit(n_heads, xp):
    lengths = np.array([3, 1, 0, 40, 9], dtype="i")
    QKV, dY = drawn(53, 36), drawn(53, 12)
    found = []
    for ops in (new_ops(0), new_ops(0), new_ops(-1)):
        Y, backprop = attend(ops, ops.asarray2f(QKV), ops.asarray1i(lengths), n_heads)
        found.append([ops.to_numpy(Y), ops.to_numpy(backprop(ops.asarray2f(dY)))])
    for first, again, on_host in zip(*found):
        assert (first == again).all()
        np.testing.assert_allclose(first, on_host, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("settings", [{}, {"activation": "relu", "positions": "none"}])
def test_gpu_kernels_make_of_a_block_what_its_layers_make(settings, xp):
    X, dY = drawn(53, 8), drawn(53, 8)
    lengths, found = np.array([3, 1, 40, 9], dtype="i"), []
    for gpu_id in (-1, 0):
        with backend(gpu_id) as ops:
            block = TransformerBlock(8, n_heads=2, **settings)
        block.initialize()
        draw = np.random.default_rng(1)
        for layer in block.walk():
            for name in layer.param_names:
                shape = layer.get_param(name).shape
                layer.set_param(name, ops.asarray(draw.normal(size=shape).astype("f")))
        Y, backprop = block.begin_update(Ragged(ops.asarray2f(X), ops.asarray1i(lengths)))
        dX = [backprop(Ragged(ops.asarray2f(dY), Y.lengths)).dataXd for _ in range(2)][0]
        gradients = [each.get_grad(name) for each in block.walk() for name in each.param_names]
        found.append([ops.to_numpy(each) for each in (Y.dataXd, dX, *gradients)])
    assert len(found[0]) == 2 + 12
    for on_host, on_device in zip(*found):
        np.testing.assert_allclose(on_device, on_host, rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
def test_gpu_kernels_drop_the_same_cells_back_as_forth(xp):
    """A step along the gradient adds to what is summed up as much as the gradient says."""
    X, dY, lengths = drawn(9, 8), drawn(9, 8), np.array([4, 5], dtype="i")

    def run(X):
        with backend(0) as ops:
            ops.seed(3)
            block = TransformerBlock(8, n_heads=2, dropout=0.5)
        block.initialize()
        draw = np.random.default_rng(1)
        for layer in block.walk():
            for name in layer.param_names:
                shape = layer.get_param(name).shape
                layer.set_param(name, ops.asarray(draw.normal(size=shape).astype("f") / 2))
        Y, backprop = block.begin_update(Ragged(ops.asarray2f(X), ops.asarray1i(lengths)))
        dX = backprop(Ragged(ops.asarray2f(dY), Y.lengths)).dataXd
        return (Y.dataXd.get().astype("d") * dY).sum(), dX.get()

    _, dX = run(X)
    step = 1e-2 / np.linalg.norm(dX)
    gained = run(X + step * dX)[0] - run(X - step * dX)[0]
    assert gained == pytest.approx(2 * step * (dX.astype("d") ** 2).sum(), rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["80", "90", "120"])
@pytest.mark.parametrize("head", [0, 32, 128])
def test_gpu_kernels_compile_for_real_devices(head, architecture, tmp_path):
    code = f"#define HEAD {head}\n{kernels.source('attention')}" if head else kernels.source()
    try:
        import nvidia.cuda_nvrtc as package

        (file,) = (p for each in package.__path__ for p in _libraries(each))
    except (ImportError, ValueError):
        if shutil.which("nvcc") is None:
            pytest.skip("needs NVRTC (pip install nvidia-cuda-nvrtc-cu12) or nvcc")
        source = tmp_path / "kernels.cu"
        source.write_text(code)
        out = ["-o", str(tmp_path / "kernels.cubin"), str(source)]
        subprocess.run(["nvcc", "-cubin", f"-arch=sm_{architecture}", *out], check=True)
        return
    nvrtc, program = ctypes.CDLL(str(file)), ctypes.c_void_p()
    text, name = code.encode(), b"kernels.cu"
    assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None)
    option = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{architecture}".encode())
    assert not nvrtc.nvrtcCompileProgram(program, 1, option)


def _libraries(folder):
    return sorted(Path(folder, "lib").glob("libnvrtc.so*"))[:1]
