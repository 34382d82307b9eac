"""Keeps of every reply the numbers that intervals need, and not the reply: a stream may bring more
text than memory holds."""

from array import array
from dataclasses import dataclass, field
from typing import Dict, Hashable, Optional, Sequence, Tuple, cast

from ..messages import Message
from ..metrics import ExampleMetric
from .bootstrap import AllSums, sums_of
from .predictions import Prediction, Recorder, example_report

# Metric, and name of one of its sums.
Key = Tuple[str, Hashable]


class UNTOLD:
    """There are no sums. (A class, which is the same one in every process.)"""


@dataclass
class Scored(Prediction):
    """What is left of a prediction.

    keys (Sequence[Key]): Of its sums.
    values (array[float]): One for each key.
    """

    keys: Sequence[Key] = ()
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def sums(self) -> AllSums:
        """See ``bootstrap.sums_of``."""
        found: Dict[str, Dict[Hashable, float]] = {}
        for (name, part), value in zip(self.keys, self.values):
            found.setdefault(name, {})[part] = value
        return {name: None if UNTOLD in sums else sums for name, sums in found.items()}


class SumsRecorder(Recorder):
    """A ``Recorder`` whose predictions are ``Scored``.

    metrics (Sequence[ExampleMetric]): What replies are scored by.
    most (int): If there are more examples, none is kept.
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
        """The numbers of a prediction."""
        self.n_seen += 1
        if not self.is_whole:
            self.rows.clear()
            return None
        sums = {
            (name, part): value
            for name, known in sums_of(example_report(row, self.metrics)).items()
            for part, value in ({UNTOLD: 0.0} if known is None else known).items()
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
