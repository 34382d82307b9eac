"""The source code of the GPU kernels, on a GPU or on the stand-in, compared with NumPy."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from thinc.api import Ragged

from tests.ops.array_backends import backend, made, new_ops, ragged
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.bilstm import BiLSTM
from thincdialog.layers.feed_forward import ResidualFeedForward
from thincdialog.layers.line_embed import LineEmbed
from thincdialog.layers.memory_hops import MemoryHops
from thincdialog.layers.normalise import LayerNorm
from thincdialog.layers.pool import pool
from thincdialog.layers.scale import Scale
from thincdialog.layers.swiglu import SwiGLU
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.layers.transformer_block import TransformerBlock
from thincdialog.layers.window_block import WindowBlock
from thincdialog.losses.class_softmax import ClassSoftmax
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.ops.attention import attend, within
from thincdialog.ops.gpu import kernels
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.row_sparse import Segment, clipped_step


@pytest.fixture(params=[1, 7, 128])
def xp(request, monkeypatch):
    """Return CuPy. On the stand-in, blocks have this number of threads."""
    cupy = pytest.importorskip("cupy")
    if hasattr(cupy, "is_stand_in"):
        monkeypatch.setattr(cupy._kernels, "threads_of_a_block", request.param)
    return cupy


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("f")


def draw_weights(model, ops):
    draw = np.random.default_rng(1)
    for node in model.walk():
        for name in node.param_names:
            shape = node.get_param(name).shape
            node.set_param(name, ops.asarray(draw.normal(size=shape).astype("f") / 2))


def close(device, host):
    np.testing.assert_allclose(device.get(), host, rtol=2e-5, atol=2e-6)


@pytest.mark.gpu
def test_gpu_kernels_sum_and_pool_groups(xp):
    table, ids = drawn(9, 33), np.array([3, 3, 0, 8, 1, 1, 1], dtype="i")
    lengths = np.array([2, 0, 4, 1])
    starts = np.concatenate(([0], lengths.cumsum())).astype("i")
    factors, on = drawn(4), [xp.asarray(each) for each in (table, ids, starts)]
    own = np.split(table[ids], starts[1:-1])
    wanted = factors[:, None] * np.stack([each.sum(axis=0) for each in own])
    close(kernels.sum_rows(*on, xp.asarray(factors)), wanted)
    close(kernels.sum_rows(xp.asarray(table[ids]), None, on[2], xp.asarray(factors)), wanted)
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
        part = Segment(0, 50, 5, rows, on(dW))
        values, key = on(W.copy()), (0, "W")
        if module is np and not spoilt:
            scale = 0.5 * optimizer.clip_scale(float(np.linalg.norm(0.5 * dW)))
            optimizer.update_parts(key, values, values, [part], scale=scale)
        elif module is xp:
            norm = clipped_step(optimizer, key, values, values, [part], 0.5, ops)
        found.append(values)
    close(found[1], found[0])
    assert np.isfinite(norm.get()).all() != spoilt


@pytest.mark.gpu
def test_gpu_kernels_dropout_is_the_same_in_blocks_of_any_size(xp):
    mask = kernels.dropout_mask((1001, 3), 0.3, 2**63 + 5, 2).get()
    assert set(np.unique(mask).tolist()) == {0.0, float(np.float32(1 / (1 - 0.3)))}
    assert abs((mask == 0).mean() - 0.3) < 0.03
    # The reference of the paper: counter and key of zeros return 6627e8d5 first.
    first = kernels.dropout_mask((4,), 0x6627E8D5 / 2**32, 0, 0).get()
    assert first[0] > 0
    assert kernels.dropout_mask((4,), 0x6627E8D6 / 2**32, 0, 0).get()[0] == 0


@pytest.mark.gpu
@pytest.mark.parametrize("n_heads", [1, 3])
def test_gpu_kernels_attend_within_sequences_and_are_deterministic(n_heads, xp):
    lengths = np.array([3, 1, 0, 40, 9], dtype="i")
    QKV, dY = drawn(53, 36), drawn(53, 12)
    found = []
    for ops in (new_ops(0), new_ops(0), new_ops(-1)):
        on = ops.asarray2f(QKV)
        of_one = [on[:, start : start + 12] for start in (0, 12, 24)]
        Y, backprop = attend(ops, *of_one, within(lengths), n_heads)
        found.append([ops.to_numpy(each) for each in (Y, *backprop(ops.asarray2f(dY)))])
    for first, again, on_host in zip(*found):
        assert (first == again).all()
        np.testing.assert_allclose(first, on_host, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "settings",
    [{}, {"activation": "relu", "positions": "none"}, {"activation": "swiglu", "nH": 7}],
)
def test_gpu_kernels_compute_a_block_as_its_layers_do(settings, xp):
    X, dY = drawn(53, 8), drawn(53, 8)
    lengths, found = np.array([3, 1, 40, 9], dtype="i"), []
    for gpu_id in (-1, 0):
        with backend(gpu_id) as ops:
            block = TransformerBlock(8, n_heads=2, **settings)
        block.initialize()
        draw_weights(block, ops)
        Y, backprop = block.begin_update(Ragged(ops.asarray2f(X), lengths))
        dX = backprop(Ragged(ops.asarray2f(dY), Y.lengths)).dataXd
        gradients = [each.get_grad(name) for each in block.walk() for name in each.param_names]
        found.append([ops.to_numpy(each) for each in (Y.dataXd, dX, *gradients)])
    assert len(found[0]) == 2 + 12
    for on_host, on_device in zip(*found):
        np.testing.assert_allclose(on_device, on_host, rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
def test_gpu_kernels_drop_the_same_cells_in_both_passes(xp):
    """A step along the gradient changes the sum by as much as the gradient says."""
    X, dY, lengths = drawn(9, 8), drawn(9, 8), np.array([4, 5], dtype="i")

    def run(X):
        with backend(0) as ops:
            ops.seed(3)
            block = TransformerBlock(8, n_heads=2, dropout=0.5)
        block.initialize()
        draw_weights(block, ops)
        Y, backprop = block.begin_update(Ragged(ops.asarray2f(X), lengths))
        dX = backprop(Ragged(ops.asarray2f(dY), Y.lengths)).dataXd
        return (Y.dataXd.get().astype("d") * dY).sum(), dX.get()

    _, dX = run(X)
    step = 1e-2 / np.linalg.norm(dX)
    gained = run(X + step * dX)[0] - run(X - step * dX)[0]
    assert gained == pytest.approx(2 * step * (dX.astype("d") ** 2).sum(), rel=1e-2)


def vectors(lengths, width):
    return Ragged(drawn(sum(lengths), width), np.array(lengths, dtype="i"))


TOKENS = ragged([[3, 3, 0, (2, 1), (9, 5)], [], [(1, 70), 4, 4, (3, 70)], *[[5]] * 150])
# Layers that have their own kernels on a GPU, and their input.
LAYERS = {
    "scale": (lambda: Scale(10.0), drawn(70, 5)),
    "feed forward": (lambda: ResidualFeedForward(12, 33), drawn(70, 12)),
    "layer norm": (lambda: LayerNorm(33), drawn(70, 33)),
    "windows": (lambda: WindowBlock(8, n_pieces=3), vectors([3, 1, 0, 70], 8)),
    "lstm": (lambda: BiLSTM(10, 3), vectors([3, 1, 9, 2], 3)),
    "gated": (lambda: SwiGLU(33, 5), drawn(70, 5)),
    "memories": (lambda: MemoryHops(4, n_hops=3), vectors([3, 1, 140, 2], 16)),
    "lines": (lambda: LineEmbed(6, 10, n_positions=3), TOKENS),
    "tokens": (lambda: TokenEmbed(6, 10), TOKENS),
    "bags": (lambda: BagEmbed(6, 10, segments="separate"), TOKENS),
    "highest": (lambda: pool("max"), vectors([3, 0, 70], 5)),
    "highest and mean": (lambda: pool("max+mean"), vectors([3, 0, 70], 5)),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", LAYERS)
def test_gpu_kernels_layers_are_those_of_the_cpu(name, xp):
    layer, X = LAYERS[name]
    weights, found = made(layer, X).to_bytes(), []
    for gpu_id in (-1, 0):
        with backend(gpu_id) as ops:
            model, host = layer().from_bytes(weights), ops.to_numpy
            of_ops = ops.asarray(X) if isinstance(X, np.ndarray) else on_ops(ops, X)
            for _ in range(2):  # Gradients are added up.
                Y, backprop = model.begin_update(of_ops)
                dY = ops.asarray(drawn(*rows_of(Y).shape))
                dX = backprop(Ragged(dY, Y.lengths) if isinstance(Y, Ragged) else dY)
            gradients = [node.get_grad(each) for node in model.walk() for each in grads_of(node)]
            found.append([host(each) for each in (rows_of(Y), rows_of(dX), *gradients)])
    assert len(found[0]) == len(found[1])
    for on_device, of_numpy in zip(*reversed(found)):
        np.testing.assert_allclose(on_device, of_numpy, rtol=2e-4, atol=2e-5)


def on_ops(ops, X):
    """Copy floats to the device. Ids and all lengths stay on the host."""
    is_float = X.dataXd.dtype.kind == "f"
    return Ragged(ops.asarray(X.dataXd) if is_float else X.dataXd, X.lengths)


def rows_of(Y):
    return Y.dataXd if isinstance(Y, Ragged) else Y


def grads_of(node):
    return [name for name in node.param_names if node.has_grad(name)]


@pytest.mark.gpu
def test_gpu_kernels_step_clears_the_gradients_it_took(xp, ops):
    host = drawn(2, 100)
    values, gradients = map(xp.asarray, host.copy())
    table = Segment(70, 90, 5, np.array([1, 3]), xp.ones((2, 5), "f"))
    parts = [Segment(8, 20), Segment(40, 70), table]
    changed = np.zeros(100, dtype=bool)
    for part in parts[:2]:
        changed[part.start : part.stop] = True
    norm = clipped_step(LazyAdam(0.1), (0, "W"), values, gradients, parts, 0.5, ops)
    close(norm, [0.5 * np.sqrt((host[1][changed] ** 2).sum() + 10)])
    close(gradients, np.where(changed, 0, host[1]))
    changed[[*range(75, 80), *range(85, 90)]] = True
    assert ((values.get() != host[0]) == changed).all()


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["80", "90", "120"])
@pytest.mark.parametrize("what", ["all", "attention of 32", "attention of 128"])
def test_gpu_kernels_compile_for_real_devices(what, architecture, tmp_path):
    code = kernels.source()
    if what != "all":
        code = f"#define HEAD {what.split()[-1]}\n{kernels.source('attention')}"
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
