"""Candidates for each example, drawn from the other replies of its split."""

import random
from typing import Any, List, Sequence

import numpy as np

from .joined_store import JoinedStore
from .store import Store

# Maximum number of draws per wanted candidate. After that, the missing candidates are drawn from
# the distinct replies, which is only needed if a few replies make up nearly all of the split.
MAX_DRAWS = 20


class CandidateSampler:
    """Draw candidates for an example: its label and other distinct replies, shuffled.

    The candidates depend only on the seed and the example's id, so that every evaluation ranks
    the same candidates.

    replies (Sequence[str]): First label of each example of the split. A reply that occurs twice
        is drawn twice as often.
    n_candidates (int): Number of candidates for each example, including its label, 2 or more.
        Examples get fewer if the split has fewer distinct replies.
    seed (int): Seed of the draws.
    """

    def __init__(self, replies: Sequence[str], n_candidates: int, seed: int):
        self.replies = replies
        self.n_candidates = n_candidates
        self.seed = seed
        self.distinct = list(dict.fromkeys(replies))

    def candidates(self, example_id: str, label: str) -> List[str]:
        """Return the candidates of one example, shuffled.

        example_id (str): Id of the example.
        label (str): The correct reply, which becomes one of the candidates.
        """
        rng = random.Random(f"{self.seed}/{example_id}")
        uniform = rng.random
        replies = self.replies
        n_replies = len(replies)
        n_others = min(self.n_candidates, len(self.distinct)) - 1
        chosen = {label: None}
        for _ in range(MAX_DRAWS * n_others):
            if len(chosen) > n_others:
                break
            chosen[replies[int(uniform() * n_replies)]] = None
        else:
            rest = [reply for reply in self.distinct if reply not in chosen]
            chosen.update(dict.fromkeys(rng.sample(rest, n_others + 1 - len(chosen))))
        del chosen[label]
        ranked = list(chosen)
        ranked.insert(int(uniform() * (len(ranked) + 1)), label)
        return ranked


class WithCandidates(JoinedStore):
    """Show a store, with drawn candidates for all labelled examples that have none.

    store (Store): Holds the examples.
    sampler (CandidateSampler): Draws the candidates.
    """

    def __init__(self, store: Store, sampler: CandidateSampler):
        super().__init__([store])
        self.sampler = sampler
        self.names = list(dict.fromkeys([*store.names, "label_candidates"]))

    message = Store.message  # With the drawn candidates.

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        found = super().cells(name, rows)
        if name != "label_candidates":
            return found
        names, labels = super().cells("id", rows), super().cells("labels", rows)
        return [
            given or (self.sampler.candidates(str(id), answers[0]) if answers else None)
            for given, id, answers in zip(found, names, labels)
        ]
