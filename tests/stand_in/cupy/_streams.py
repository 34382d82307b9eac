"""The null stream, and its events."""

from ._counts import waited_only
from ._devices import current as current_device


class CUDARuntimeError(RuntimeError):
    pass


class Event:
    done = True

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._device = current_device()

    def record(self, stream=None):
        if self._device != current_device():
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")

    def synchronize(self):
        waited_only("Event.synchronize")


class Stream:
    ptr = 0

    def synchronize(self):
        waited_only("Stream.synchronize")


def get_current_stream(device_id=-1):
    return Stream.null


Stream.null = Stream()
