"""Devices that do all work at once: two, or as many as CUDA_VISIBLE_DEVICES names."""

import os
from types import SimpleNamespace

from . import _devices
from ._memory import MemoryPool, OutOfMemoryError, pool
from ._streams import CUDARuntimeError, Event, Stream, get_current_stream  # noqa: F401


def _visible():
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return ["0", "1"] if named is None else [each for each in named.split(",") if each]


def _device_count():
    if not _visible():
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return len(_visible())


class Device:
    mem_info = (70 << 30, 80 << 30)

    def __init__(self, device=None):
        self.id = _devices.current() if device is None else int(device)
        self._before = []
        if not 0 <= self.id < len(_visible()):
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def use(self):
        _devices.use(self.id)
        return self

    def __eq__(self, other):
        return self.id == other.id

    def __enter__(self):
        self._before.append(_devices.current())
        return self.use()

    def __exit__(self, *args):
        _devices.use(self._before.pop())


device = SimpleNamespace(Device=Device)
memory = SimpleNamespace(MemoryPool=MemoryPool, OutOfMemoryError=OutOfMemoryError, pool=pool)
nvtx = SimpleNamespace(RangePush=lambda *args: None, RangePop=lambda: None)
runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=_device_count,
    getDevice=_devices.current,
)


def get_elapsed_time(start_event, end_event):
    return float("nan")  # The stand-in measures no times.
