"""LabelNoise: a share of the examples with a wrong label."""

from typing import Dict, Iterator, List, Optional

from ..errors import ConfigError, DataError, Problem
from ..messages import Episode, Message
from ..registry import registry
from .mutator import Episodes, random_of


@registry.mutators("thincdialog.LabelNoise.v1")
class LabelNoise:
    """Replace the labels of some examples by a wrong one, to see how much a model can bear.

    An example is wrong, or not, in the same way in every epoch, and stays wrong when `share`
    is raised. All wrong labels are equally likely: those of the example's `label_candidates`
    if it has any, else `labels`, else all that the split has; to know these, it is read once
    more (in a stream, once altogether; they are held). Of data without an end, give them.

    share (float): Share of the examples, each by a seeded draw, 0.0 to 1.0.
    labels (Optional[List[str]]): Labels to put; those of the split if None.
    seed (int): Of the draws, together with the example's id.
    splits (Optional[List[str]]): Splits to change; all if None. By default scores
        on dev and test are those of the right labels.
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
        """The episodes with some labels replaced."""
        if self.share == 0.0 or (self.splits is not None and split not in self.splits):
            yield from episodes()
            return
        if self.labels is None:
            # Kept: a split has its own copy of the mutator.
            known: Dict[str, None] = {}
            for episode in episodes():
                for message in episode:
                    known.update(dict.fromkeys(message.get("labels", ())))
            self.labels = list(known)
        for episode in episodes():
            yield [self._changed(message, split) for message in episode]

    def _changed(self, message: Message, split: str) -> Message:
        right = message.get("labels")
        draws = random_of(message, self.seed)
        if not right or draws.random() >= self.share:
            return message
        pool = message.get("label_candidates") or self.labels or ()
        for _ in range(8):  # As a rule one draw will do, however large the pool.
            wrong = pool[draws.randrange(len(pool))]
            if wrong not in right:
                return Message(message, labels=[wrong])
        others = [label for label in pool if label not in right]
        if not others:
            text = f"example '{message.get('id')}' can get no wrong label: there is no other one"
            raise DataError(split, f"{text}; give thincdialog.LabelNoise.v1 some 'labels'")
        return Message(message, labels=[draws.choice(others)])
