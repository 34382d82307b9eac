"""The metrics of a server for Prometheus, summed over its worker processes."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

# Environment variable with the folder in which worker processes count together; prometheus_client
# reads it when it is imported.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """Hold the counters of an application. (Each application has its own, unless there are
    workers.)"""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: Any = {"namespace": "thincdialog", "registry": self.registry}
        self.requests = Counter("requests", "Requests", ["path", "status"], **own)
        self.seconds = Histogram("request_seconds", "Seconds per request", ["path"], **own)
        self.batches = Summary("batch_size", "Messages per batch", ["model"], **own)
        self.unlogged = Counter("unlogged", "Conversations that were not logged", **own)
        self.waiting = Gauge("waiting", "Waiting", ["model"], multiprocess_mode="livesum", **own)

    def text(self) -> bytes:
        """Return all values in Prometheus' text format."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        files = [str(path) for path in Path(os.environ[FOLDER]).glob("*.db") if _is_counted(path)]
        return generate_latest(SimpleNamespace(collect=lambda: MultiProcessCollector.merge(files)))


def _is_counted(path: Path) -> bool:
    """Return whether to include the file of a worker. A file without values is left out, and so are
    the waiting requests of a worker that was killed."""
    is_alive = Path("/proc", path.stem.rpartition("_")[2]).exists()
    return path.stat().st_size > 0 and (is_alive or not path.name.startswith("gauge_live"))
