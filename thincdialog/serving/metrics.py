"""What a server counts, for Prometheus; summed over the workers of a server."""

import os
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

# Where worker processes count together; prometheus_client reads it when it is imported.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """The counters of an app. (Each app has its own, unless there are workers.)"""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: Any = {"namespace": "thincdialog", "registry": self.registry}
        self.requests = Counter("requests", "Requests", ["path", "status"], **own)
        self.seconds = Histogram("request_seconds", "Seconds per request", ["path"], **own)
        self.batches = Summary("batch_size", "Messages per batch", ["model"], **own)
        self.unlogged = Counter("unlogged", "Conversations that were not logged", **own)
        own["multiprocess_mode"] = "livesum"
        self.waiting = Gauge("waiting", "Messages that wait", ["model"], **own)

    def text(self) -> bytes:
        """All values in Prometheus' form."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        for path in Path(os.environ[FOLDER]).glob("gauge_live*.db"):
            if not Path("/proc", path.stem.rpartition("_")[2]).exists():
                path.unlink(missing_ok=True)  # Of a worker that was killed.
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
