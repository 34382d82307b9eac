"""Each thread has a current device, which does the thread's work."""

import threading

_of_thread = threading.local()


def current():
    return getattr(_of_thread, "device", 0)


def use(device):
    _of_thread.device = device


def check(device):
    """Refuse the memory of another device: devices cannot reach each other's memory."""
    if device != current():
        raise ValueError(
            "Array device must be same as the current device: "
            f"array device = {device} while current = {current()}"
        )
