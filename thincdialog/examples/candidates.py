"""Candidates for an example, drawn from the other replies of its split."""

import random
from typing import Any, List, Sequence, Tuple

import numpy as np

from .encoded import Encoded
from .store import Store

# Draws for each wanted candidate before the rest is taken from the distinct replies:
# only where a few replies make up nearly all of the split.
MAX_DRAWS = 20


class CandidateSampler:
    """Gives each example its label and other replies, all different, shuffled.

    The draw depends on the seed and the example's id alone, so that every
    evaluation ranks the same candidates.

    replies (Sequence[str]): The first label of every example of the split; a reply
        that is there twice is drawn twice as often.
    n_candidates (int): Candidates for each example, the label counted, 2 or more;
        fewer where the split has no more distinct replies.
    seed (int): Seed of the draws.
    """

    def __init__(self, replies: Sequence[str], n_candidates: int, seed: int):
        self.replies = replies
        self.n_candidates = n_candidates
        self.seed = seed
        self.distinct = list(dict.fromkeys(replies))

    def candidates(self, example_id: str, label: str) -> List[str]:
        """The candidates of one example.

        example_id (str): The message's `id`.
        label (str): The right reply, which is one of them.
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


class WithCandidates(Store):
    """A store whose examples without candidates get drawn ones.

    store (Store): What it shows.
    sampler (CandidateSampler): Draws them.
    """

    def __init__(self, store: Store, sampler: CandidateSampler):
        self.store, self.sampler = store, sampler
        self.starts, self.is_held = store.starts, store.is_held
        self.names = list(dict.fromkeys([*store.names, "label_candidates"]))
        self.encoder_keys, self.is_mapped = store.encoder_keys, store.is_mapped

    def encoded(self, key: str, rows: np.ndarray) -> Encoded:
        return self.store.encoded(key, rows)

    @property
    def _numbered_labels(self) -> Tuple[np.ndarray, Sequence[str]]:
        return self.store.label_ids, self.store.label_texts

    @property
    def n_words(self) -> np.ndarray:
        return self.store.n_words

    def cells(self, name: str, rows: np.ndarray) -> List[Any]:
        found = self.store.cells(name, rows)
        if name != "label_candidates":
            return found
        names, labels = self.store.cells("id", rows), self.store.cells("labels", rows)
        return [
            given or (self.sampler.candidates(str(id), answers[0]) if answers else None)
            for given, id, answers in zip(found, names, labels)
        ]
