"""Devices that do at once what they are asked to do: two, or as many as CUDA_VISIBLE_DEVICES
names."""

import ctypes
import os
import socket
from types import SimpleNamespace

import numpy as np

from . import _devices
from . import _nccl as nccl  # noqa: F401
from ._counts import launched, waited_only
from ._memory import MemoryPool, OutOfMemoryError, pool
from ._streams import (  # noqa: F401
    CUDARuntimeError,
    Event,
    Stream,
    alloc_pinned_memory,
    get_current_stream,
)


def _visible():
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return ["0", "1"] if named is None else [each for each in named.split(",") if each]


def _device_count():
    if not _visible():
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return len(_visible())


def physical_device():
    """What the current device is on its machine, which CUPY_STAND_IN_HOST in the environment may
    name; not CuPy's."""
    host = os.environ.get("CUPY_STAND_IN_HOST", socket.gethostname())
    return host, _visible()[runtime.getDevice()]


class Device:
    mem_info, compute_capability = (70 << 30, 80 << 30), "90"

    def __init__(self, device=None):
        self.id = _devices.current() if device is None else int(device)
        self._before = []
        if not 0 <= self.id < len(_visible()):
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def use(self):
        _devices.use(self.id)
        return self

    def synchronize(self):
        waited_only("Device.synchronize")

    def __eq__(self, other):
        return self.id == other.id

    def __enter__(self):
        self._before.append(_devices.current())
        return self.use()

    def __exit__(self, *args):
        _devices.use(self._before.pop())


def _matrices(address, shape, row, step, n):
    """Matrices that lie ``step`` floats apart, as cuBLAS reads them: down their columns."""
    for number in range(n):
        floats = (ctypes.c_float * (row * shape[1])).from_address(address + 4 * number * step)
        yield np.frombuffer(floats, dtype="f").reshape(shape[1], row).T[: shape[0]]


def _strided_products(handle, t1, t2, m, n, k, alpha, A, lda, stepA, B, ldb, stepB, beta, C, ldc,
                      stepC, count):  # fmt: skip
    sizes = (lda * (m if t1 else k), ldb * (k if t2 else n), ldc * n)
    if (A | B | C) % 4 or any(s < size for s, size in zip((stepA, stepB, stepC), sizes)):
        raise ValueError("CUBLAS_STATUS_INVALID_VALUE: matrices that lie one behind the other")
    launched("product", 1, max(m * k, n * k, m * n))
    alpha, beta = (ctypes.c_float.from_address(each).value for each in (alpha, beta))
    of_A = _matrices(A, (k, m) if t1 else (m, k), lda, stepA, count)
    of_B = _matrices(B, (n, k) if t2 else (k, n), ldb, stepB, count)
    for a, b, c in zip(of_A, of_B, _matrices(C, (m, n), ldc, stepC, count)):
        # As NumPy's products of rows, which are theirs transposed.
        product = np.float32(alpha) * ((b if t2 else b.T) @ (a if t1 else a.T)).T
        c[...] = product + np.float32(beta) * c if beta else product


device = SimpleNamespace(Device=Device, get_cublas_handle=lambda: 1)
cublas = SimpleNamespace(CUBLAS_OP_N=0, CUBLAS_OP_T=1, sgemmStridedBatched=_strided_products)
memory = SimpleNamespace(MemoryPool=MemoryPool, OutOfMemoryError=OutOfMemoryError, pool=pool)
nvtx = SimpleNamespace(RangePush=lambda *args: None, RangePop=lambda: None)
runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=_device_count,
    getDevice=_devices.current,
    deviceSynchronize=lambda: waited_only("deviceSynchronize"),
)


def get_elapsed_time(start_event, end_event):
    if not (start_event.done and end_event.done):
        raise CUDARuntimeError("cudaErrorNotReady: device not ready")
    return float(end_event._at - start_event._at)
