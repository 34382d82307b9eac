"""What a server counts, for Prometheus; summed over the workers of a server."""

import os
from pathlib import Path
from types import SimpleNamespace
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
        self.waiting = Gauge("waiting", "Waiting", ["model"], multiprocess_mode="livesum", **own)

    def text(self) -> bytes:
        """All values in Prometheus' form."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        files = [str(path) for path in Path(os.environ[FOLDER]).glob("*.db") if _is_counted(path)]
        return generate_latest(SimpleNamespace(collect=lambda: MultiProcessCollector.merge(files)))


def _is_counted(path: Path) -> bool:
    """Whether the file of a worker counts: not before its first value, and what waits at a worker
    that was killed does not."""
    is_alive = Path("/proc", path.stem.rpartition("_")[2]).exists()
    return path.stat().st_size > 0 and (is_alive or not path.name.startswith("gauge_live"))
