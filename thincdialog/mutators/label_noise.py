"""LabelNoise: give a fraction of the examples a wrong label."""

from typing import Dict, Iterator, List, Optional

from ..errors import ConfigError, DataError, Problem
from ..messages import Episode, Message
from ..registry import registry
from .mutator import Episodes, random_of


@registry.mutators("thincdialog.LabelNoise.v1")
class LabelNoise:
    """Replace the labels of some examples by a wrong one, to see how much label noise a model
    tolerates.

    The same examples get the same wrong labels in every epoch, and keep them if `share` is raised.
    Wrong labels are drawn with equal probability from the example's `label_candidates` if it has
    any, else from `labels`, else from all labels of the split. To collect these, the split is read
    once more (for a stream, only the first time), and the labels are held in memory. For data
    without an end, set `labels`.

    share (float): Fraction of the examples to change, 0.0 to 1.0; a seeded draw decides for each.
    labels (Optional[List[str]]): Wrong labels to draw from; those of the split if None.
    seed (int): Seed of the draws, together with the example's id.
    splits (Optional[List[str]]): Splits to change; all if None. By default only "train", so that
        dev and test keep the right labels.
    RAISES (ConfigError): If share is out of range, or labels is empty.
    """

    def __init__(
        self,
        share: float,
        labels: Optional[List[str]] = None,
        seed: int = 0,
        splits: Optional[List[str]] = ["train"],  # noqa: B006 - never changed
    ):
        if not 0.0 <= share <= 1.0:
            text = f"'share' of thincdialog.LabelNoise.v1 is {share}"
            raise ConfigError([Problem("", text, "give 0.0 to 1.0")])
        if labels is not None and not labels:
            text = "'labels' of thincdialog.LabelNoise.v1 is empty"
            raise ConfigError([Problem("", text, "give 1 or more labels, or null for the data's")])
        self.share = share
        self.labels = None if labels is None else list(dict.fromkeys(labels))
        self.seed = seed
        self.splits = splits

    def rewrite(self, episodes: Episodes, split: str) -> Iterator[Episode]:
        """Yield the episodes with some labels replaced."""
        if self.share == 0.0 or (self.splits is not None and split not in self.splits):
            yield from episodes()
            return
        if self.labels is None:
            # Keep the labels: each split has its own copy of the mutator.
            known: Dict[str, None] = {}
            for episode in episodes():
                for message in episode:
                    known.update(dict.fromkeys(message.get("labels", ())))
            self.labels = list(known)
        for episode in episodes():
            yield [self._changed(message, split) for message in episode]

    def _changed(self, message: Message, split: str) -> Message:
        """Return a message with a wrong label if it is drawn; otherwise the message itself."""
        right = message.get("labels")
        draws = random_of(message, self.seed)
        if not right or draws.random() >= self.share:
            return message
        pool = message.get("label_candidates") or self.labels or ()
        for _ in range(8):  # Usually the first draw gives a wrong label, however large the pool.
            wrong = pool[draws.randrange(len(pool))]
            if wrong not in right:
                return Message(message, labels=[wrong])
        others = [label for label in pool if label not in right]
        if not others:
            text = f"example '{message.get('id')}' cannot get a wrong label: there is no other"
            raise DataError(split, f"{text}; set 'labels' of thincdialog.LabelNoise.v1")
        return Message(message, labels=[draws.choice(others)])
