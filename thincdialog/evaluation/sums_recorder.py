"""Keeps the numbers that intervals need of every reply, but not the reply: the text of a stream may
be larger than memory."""

from array import array
from dataclasses import dataclass, field
from typing import Dict, Hashable, Optional, Sequence, Tuple, cast

from ..messages import Message
from ..metrics import ExampleMetric
from .bootstrap import AllSums, sums_of
from .predictions import Prediction, Recorder, example_report

# Metric, and name of one of its sums.
Key = Tuple[str, Hashable]


@dataclass
class Scored(Prediction):
    """Hold the sums of a prediction, without its texts.

    keys (Sequence[Key]): Keys of its sums.
    values (array[float]): One value for each key.
    """

    keys: Sequence[Key] = ()
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def sums(self) -> AllSums:
        """Return the same as ``bootstrap.sums_of()``, without metrics that have no sums."""
        found: Dict[str, Dict[Hashable, float]] = {}
        for (name, part), value in zip(self.keys, self.values):
            found.setdefault(name, {})[part] = value
        return found


class SumsRecorder(Recorder):
    """Record replies as ``Scored``.

    metrics (Sequence[ExampleMetric]): The metrics that replies are scored by.
    most (int): Most examples that are kept; if there are more, none is.
    """

    def __init__(self, metrics: Sequence[ExampleMetric], most: int):
        super().__init__()
        self.metrics, self.most = metrics, most
        self.n_seen = 0
        self._known: Dict[Tuple[Key, ...], Tuple[Key, ...]] = {}

    @property
    def is_whole(self) -> bool:
        """Whether every example was kept."""
        return self.n_seen <= self.most

    def join(self, other: Recorder) -> None:
        super().join(other)
        self.n_seen += cast(SumsRecorder, other).n_seen

    def kept(self, row: Prediction) -> Optional[Prediction]:
        """Return the numbers of a prediction."""
        self.n_seen += 1
        if not self.is_whole:
            self.rows.clear()
            return None
        sums = {
            (name, part): value
            for name, known in sums_of(example_report(row, self.metrics)).items()
            for part, value in (known or {}).items()
        }
        keys = tuple(sums)
        return Scored(
            id=row.id,
            labels=("",) * bool(row.labels),
            reply=Message(),
            task=row.task,
            conversation=row.conversation,
            keys=self._known.setdefault(keys, keys),
            values=array("d", sums.values()),
        )
