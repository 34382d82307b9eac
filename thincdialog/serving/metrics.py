"""What a server counts, for Prometheus; summed over the workers of a server."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

# Where worker processes count together; prometheus_client reads it when it is imported.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of an app. (Each app has its own, unless there are workers.)"""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        common: Any = {"registry": self.registry, "namespace": "thincdialog"}
        self.requests = Counter("requests", "Requests", ["path", "status"], **common)
        self.seconds = Histogram(
            "request_seconds", "Seconds per request", ["path"], buckets=SECONDS, **common
        )
        self.batches = Histogram(
            "batch_size", "Messages per batch", ["model"], buckets=SIZES, **common
        )
        self.waiting = Gauge(
            "waiting", "Messages that wait", ["model"], multiprocess_mode="livesum", **common
        )
        self.unlogged = Counter("unlogged", "Conversations that were not logged", **common)

    def text(self) -> bytes:
        """All values in Prometheus' form."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        folder = Path(os.environ[FOLDER])
        for path in folder.glob("gauge_live*.db"):
            pid = path.stem.rpartition("_")[2]
            if not Path(f"/proc/{pid}").exists():  # Killed.
                with suppress(OSError):
                    multiprocess.mark_process_dead(int(pid))
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)
        return generate_latest(together)
