from random import Random
from typing import Any, Dict, List, Sequence

from ..files.json_file import texts_in, whole_number_in
from ..messages import Message, column
from ..protocol import Observations
from ..registry import registry
from ..teachers import Teacher
from .conversation import ConversationAgent


@registry.agents("thincdialog.RandomCandidate.v1")
class RandomCandidateAgent(ConversationAgent):
    """Ranks the candidates at random; without candidates, draws from the distinct labels of the
    training data. The draw for an example depends only on the seed and on the example's ``id`` (or
    its text, if it has none), and so neither on the order of examples nor on the batches.
    """

    id = "random_candidate"

    def __init__(self) -> None:
        super().__init__(history_size=1)
        self.seed = 0
        self.labels: List[str] = []

    def initialize(self, train: Teacher, *, seed: int = 0, **_: Any) -> None:
        self.seed = seed
        self.labels = list(dict.fromkeys(train.all_labels()))

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        names = column(observations, "id")
        texts = column(observations, "text")
        candidates = column(observations, "label_candidates")
        return self.ranked_replies(
            self._draw(text if name is None else name, self.labels if among is None else among)
            for name, text, among in zip(names, texts, candidates)
        )

    def _draw(self, name: Any, among: Sequence[str]) -> List[str]:
        # A seed of type str is hashed in the same way in every process.
        return Random(f"{self.seed} {name}").sample(among, min(self.n_ranked, len(among)))

    def state(self) -> Dict[str, Any]:
        return {"seed": self.seed, "labels": self.labels}

    def set_state(self, state: Dict[str, Any]) -> None:
        self.seed = whole_number_in(state, "seed")
        self.labels = texts_in(state, "labels")
