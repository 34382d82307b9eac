"""What a server counts, for Prometheus; summed over the workers of a server."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

# Where worker processes count together; prometheus_client reads it when it is imported.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of an app. (Each app has its own, unless there are workers.)"""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def made(kind: Any, name: str, about: str, *labels: str, **more: Any) -> Any:
            return kind(name, about, labels, "thincdialog", registry=self.registry, **more)

        self.requests = made(Counter, "requests", "Requests", "path", "status")
        text = "Seconds per request"
        self.seconds = made(Histogram, "request_seconds", text, "path", buckets=SECONDS)
        text = "Messages per batch"
        self.batches = made(Histogram, "batch_size", text, "model", buckets=SIZES)
        text = "Messages that wait"
        self.waiting = made(Gauge, "waiting", text, "model", multiprocess_mode="livesum")
        self.unlogged = made(Counter, "unlogged", "Conversations that were not logged")

    def text(self) -> bytes:
        """All values in Prometheus' form."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        for path in Path(os.environ[FOLDER]).glob("gauge_live*.db"):
            pid = path.stem.rpartition("_")[2]
            if not Path(f"/proc/{pid}").exists():  # Killed.
                with suppress(OSError):
                    mark_process_dead(int(pid))
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
