"""The null stream, and its events."""

from ._counts import Clock, waited_only
from ._devices import current as current_device


class CUDARuntimeError(RuntimeError):
    pass


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._device = current_device()
        self._at = 0  # The number of kernels that were started before the event.

    def record(self, stream=None):
        if self._device != current_device():
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        self._at = Clock.asked

    @property
    def done(self):
        return self._at <= Clock.over

    def synchronize(self):
        waited_only("Event.synchronize", self._at)


class Stream:
    ptr = 0

    def synchronize(self):
        waited_only("Stream.synchronize")


def get_current_stream(device_id=-1):
    return Stream.null


Stream.null = Stream()
