"""Record the numbers that intervals need for every reply, but not the reply itself, because the
text of a stream may be larger than memory."""

from dataclasses import dataclass, field
from typing import Dict, Optional, Sequence, cast

from ..messages import Message
from ..metrics import ExampleMetric
from ..metrics.metric import Sums
from .bootstrap import AllSums, sums_of
from .predictions import Prediction, Recorder, report_of


@dataclass
class Scored(Prediction):
    """Hold the sums of a prediction, without its texts.

    sums (AllSums): The sums of each metric, from ``bootstrap.sums_of()``.
    """

    sums: AllSums = field(default_factory=dict)


class SumsRecorder(Recorder):
    """Record replies as ``Scored``.

    metrics (Sequence[ExampleMetric]): The metrics that replies are scored by.
    most (int): Largest number of examples that is kept. If there are more, no example is kept.
    """

    def __init__(self, metrics: Sequence[ExampleMetric], most: int):
        super().__init__()
        self.metrics, self.most = metrics, most
        self.n_seen = 0
        # Many examples have the same sums of a metric. Equal sums are in memory once.
        self._known: Dict[Optional[tuple], Optional[Sums]] = {}

    @property
    def is_whole(self) -> bool:
        """Whether every example was kept."""
        return self.n_seen <= self.most

    def join(self, other: Recorder) -> None:
        super().join(other)
        self.n_seen += cast(SumsRecorder, other).n_seen

    def kept(self, row: Prediction) -> Optional[Prediction]:
        """Return a prediction with its sums and without its texts; None if there are too many."""
        self.n_seen += 1
        if not self.is_whole:
            self.rows.clear()
            return None
        sums = sums_of(report_of([row], self.metrics))
        return Scored(
            id=row.id,
            labels=("",) * bool(row.labels),
            reply=Message(),
            task=row.task,
            conversation=row.conversation,
            sums={name: self._shared(own) for name, own in sums.items()},
        )

    def _shared(self, sums: Optional[Sums]) -> Optional[Sums]:
        key = None if sums is None else tuple(sums.items())
        return self._known.setdefault(key, sums)
