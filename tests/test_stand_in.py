"""The stand-in for CuPy is as strict as CuPy, and runs kernels as a GPU would."""

from copy import deepcopy

import numpy as np
import pytest

pytestmark = pytest.mark.gpu
# Each block sums its row by halves, so that threads must wait for each other.
ROW_SUMS = r"""
extern "C" __global__ void row_sums(const float* X, float* sums, int width) {
    __shared__ float part[256];
    float own = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) own += X[blockIdx.x * width + i];
    part[threadIdx.x] = own;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
"""


@pytest.fixture
def cupy():
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("tests the stand-in for CuPy")
    return cupy


def test_stand_in_refuses_what_cupy_refuses(cupy):
    X, host = cupy.ones((3, 2), dtype="f"), np.ones((3, 2), dtype="f")
    refused = [
        lambda: np.asarray(X),
        lambda: X + host,
        lambda: host + X,
        lambda: np.add(X, host),
        lambda: cupy.sum(host),
        lambda: cupy.concatenate([X, host]),
        lambda: X.__iadd__(host),
        lambda: X @ host.T,
        lambda: cupy.zeros(X),
        lambda: cupy.where(X > 0, X, host),
        lambda: X.__setitem__(0, [1.0, 2.0]),
        lambda: cupy.array(["a"]),
        lambda: cupy.add(X, 1, where=X > 0),
    ]
    for each in refused:
        with pytest.raises((TypeError, ValueError)):
            each()
    missing = [(X, "count_nonzero"), (X, "amax"), (X, "__index__"), (cupy, "errstate")]
    if cupy.__version__.startswith("13."):
        missing.append((cupy, "put_along_axis"))
    assert not any(hasattr(owner, name) for owner, name in missing)


def test_stand_in_counts_each_wait_copy_and_launch_with_its_line(cupy):
    with cupy.counted() as counts:
        X = cupy.asarray(np.ones((3, 2), dtype="f"))
        Y = X * 2 + np.float32(1)
        Y[:, 0] = X.T[0]
        assert float(Y.sum()) == 12.0 and X[X > 0].tolist() == [1.0] * 6
    assert (counts.h2d, counts.h2d_bytes) == (1, 24)
    assert counts.waits == counts.d2h == 3
    assert counts.launches == 7
    assert "test_stand_in.py:" in counts.shown("h2d")
    with cupy.counted() as counts:
        X.T.reshape(2, 3), X[0], X[:, ::2], cupy.empty((4,)), X.ravel()
    assert (counts.launches, counts.waits) == (0, 0)


@pytest.mark.parametrize("n_threads", [1, 4, 64])
def test_stand_in_runs_the_source_of_kernels(n_threads, cupy, monkeypatch):
    monkeypatch.setattr(cupy._kernels, "threads_of_a_block", n_threads)
    X = cupy.asarray(np.arange(5 * 33, dtype="f").reshape(5, 33))
    sums = cupy.empty((5,), dtype="f")
    kernel = cupy.RawKernel(ROW_SUMS, "row_sums")
    with cupy.counted() as counts:
        kernel((5,), (128,), (X, sums, 33))
    assert counts.launches == 1
    assert sums.tolist() == X.sum(axis=1).tolist()
    with pytest.raises(ValueError, match="strided"):
        kernel((5,), (128,), (X[:, :4], sums, 4))
    with pytest.raises(TypeError):
        kernel((5,), (128,), (np.ones((5, 33), dtype="f"), sums, 33))


def test_stand_in_counts_the_cells_of_launches_and_turns_of_kernels(cupy):
    X, sums = cupy.ones((5, 33), dtype="f"), cupy.empty((5,), dtype="f")
    with cupy.counted() as counts:
        X[0].copy()
    assert counts.most_cells == 33
    with cupy.counted() as counts:
        cupy.RawKernel(ROW_SUMS, "row_sums")((5,), (1,), (X, sums, 33))
    assert counts.most_cells == 5 * 33
    with cupy.counted() as counts:
        cupy.random.Generator(cupy.random.Philox4x3210(0))
    assert counts.generators == 2


def test_stand_in_reuses_memory_and_refuses_it_on_request(cupy):
    pool = cupy.cuda.MemoryPool()
    held = [cupy._memory.Held(pool, n) for n in (1000, 1000, 2000)]
    assert (pool.used_bytes(), pool.total_bytes()) == (4096, 4096)
    del held[:2]
    with cupy.counted() as counts:
        held.append(cupy._memory.Held(pool, 2048))  # The two free pieces are not a single block.
        held.append(cupy._memory.Held(pool, 600))
    assert (counts.taken, pool.used_bytes(), pool.total_bytes()) == (1, 5120, 6144)
    held.clear()
    pool.free_all_blocks()
    assert (pool.used_bytes(), pool.total_bytes()) == (0, 0)
    pool = cupy.get_default_memory_pool()
    with pool.refusing(4096), pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="8,192"):
        cupy.empty((2048,), dtype="f")
    cupy.empty((2048,), dtype="f")


def test_stand_in_refuses_arrays_of_another_device(cupy):
    cupy.cuda.Device(0).use()
    with cupy.cuda.Device(1):
        X = cupy.ones((3, 2), dtype="f")
    assert (X.device.id, X.T.device.id, cupy.cuda.runtime.getDevice()) == (1, 1, 0)
    refused = [
        lambda: X + 1,
        lambda: cupy.ones((3, 2)) * X,
        lambda: X.sum(),
        lambda: X.astype("d"),
        lambda: X.fill(0),
        lambda: cupy.RawKernel(ROW_SUMS, "row_sums")((3,), (1,), (X, cupy.empty((3,)), 2)),
    ]
    for each in refused:
        with pytest.raises(ValueError, match="array device = 1 while current = 0"):
            each()
    assert X.get().tolist() == [[1, 1]] * 3
    assert (X.copy().device.id, deepcopy(X).device.id) == (0, 1)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        cupy.cuda.Device(2)


def test_stand_in_refuses_events_of_another_device_and_arrays_of_another_shape(cupy):
    event = cupy.cuda.Event()
    event.record()
    event.synchronize()
    assert event.done
    with pytest.raises(ValueError, match="Shape"):
        cupy.zeros((8,), dtype="u1").set(np.zeros(7, dtype="u1"))
    with cupy.cuda.Device(1):
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="InvalidResourceHandle"):
            event.record()
