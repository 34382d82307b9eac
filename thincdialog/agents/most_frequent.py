from collections import Counter
from typing import Any, Dict, List, Sequence

from ..files.json_file import whole_number_in
from ..messages import Message, column
from ..protocol import Observations
from ..registry import registry
from ..teachers import Teacher
from .conversation import ConversationAgent


@registry.agents("thincdialog.MostFrequent.v1")
class MostFrequentAgent(ConversationAgent):
    """Ranks the candidates by their frequency as labels of the training data, with unseen
    candidates last; without candidates, ranks all labels of the training data. Equally frequent
    candidates keep their order, and equally frequent labels are sorted by their text.
    """

    id = "most_frequent"

    def __init__(self) -> None:
        super().__init__(history_size=1)
        self._set({})

    def _set(self, counts: Dict[str, int]) -> None:
        self.counts = counts
        self.labels = sorted(counts, key=lambda text: (-counts[text], text))

    def initialize(self, train: Teacher, *, seed: int = 0, **_: Any) -> None:
        self._set(Counter(train.all_labels()))

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        return self.ranked_replies(
            self.labels if among is None else self._rank(among)
            for among in column(observations, "label_candidates")
        )

    def _rank(self, candidates: Sequence[str]) -> List[str]:
        counts = self.counts
        return sorted(candidates, key=lambda text: -counts.get(text, 0))

    def state(self) -> Dict[str, Any]:
        return {"counts": dict(self.counts)}

    def set_state(self, state: Dict[str, Any]) -> None:
        counts = state["counts"]
        self._set({text: whole_number_in(counts, text) for text in counts})
