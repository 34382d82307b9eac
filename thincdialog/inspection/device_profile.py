"""Measure the GPU requests of a training step, and the time in which the GPU works."""

import math
import time
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

from .device_calls import FROM_HOST, LAUNCH, TO_HOST, WAIT, noting
from .device_watch import DeviceWatch
from .held_device import HeldDevice


@dataclass
class AskingLine:
    """Describe a line of code that makes the host wait, or that copies.

    kind (str): "waits", "from_host" or "to_host".
    line (str): FILE:LINE of the nearest line outside Thinc and CuPy.
    times (float): Number of these requests per step.
    """

    kind: str
    line: str
    times: float


@dataclass
class DeviceUse:
    """Describe a training step's use of a GPU.

    busy_ms (Optional[float]): Milliseconds in which the GPU works; None if it cannot be measured,
        because the step waits for the GPU, or queues more work than fits while the GPU is held.
    idle_share (Optional[float]): Fraction of the step in which the GPU is idle.
    launches, waits, from_host, to_host (float): Number of kernels, waits of the host and copies, as
        far as ``device_calls`` records them.
    from_host_bytes, to_host_bytes (float): Bytes of the copies.
    lines (List[AskingLine]): Lines of waits and copies, the most frequent first.
    """

    busy_ms: Optional[float]
    idle_share: Optional[float]
    launches: float
    waits: float
    from_host: float
    to_host: float
    from_host_bytes: float
    to_host_bytes: float
    lines: List[AskingLine]


def measure_on_device(
    ops: Any, step: Callable[[], Any], timed_step: Callable[[DeviceWatch], Any], steps: int
) -> Tuple[DeviceWatch, DeviceUse, float, float]:
    """Make steps normally, one after the other; then make each step separately while the GPU is
    held until the whole step is queued, so that the measured times contain no gaps.

    ops (Ops): Ops of a GPU.
    step (Callable): Makes a step.
    timed_step (Callable): Makes a step whose calls the given watch times.
    steps (int): Number of steps of each kind.
    RETURNS (Tuple[DeviceWatch, DeviceUse, float, float]): The watch, the use of the GPU, the
        seconds of all normal steps, and the seconds of all steps on a held GPU.
    """
    wait = ops.xp.cuda.get_current_stream().synchronize
    wait()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    plain = time.perf_counter() - started
    held = HeldDevice(ops.xp)
    watch = DeviceWatch(held.event, held.between)
    busy = 0.0
    started = time.perf_counter()

    def noted_step() -> None:
        with watch.step():
            timed_step(watch)

    with noting(ops, watch.note):
        for _ in range(steps):
            busy += held.time(noted_step, watch.has_waited)
            watch.keep()
    watch.keep_elsewhere(steps)
    return watch, _use(watch, busy, plain, steps), plain, time.perf_counter() - started


def _use(watch: DeviceWatch, busy: float, plain: float, steps: int) -> DeviceUse:
    times = dict.fromkeys((LAUNCH, WAIT, FROM_HOST, TO_HOST), 0.0)
    lines = []
    for (kind, line), n in sorted(watch.asked.items(), key=lambda each: -each[1]):
        times[kind] += n / steps
        if kind != LAUNCH:
            lines.append(AskingLine(kind, line, n / steps))
    is_known = not math.isnan(busy)
    return DeviceUse(
        busy_ms=1000 * busy / steps if is_known else None,
        idle_share=max(0.0, 1 - busy / plain) if is_known else None,
        **times,  # The kinds are the names of the fields.
        from_host_bytes=watch.n_bytes[FROM_HOST] / steps,
        to_host_bytes=watch.n_bytes[TO_HOST] / steps,
        lines=lines,
    )
