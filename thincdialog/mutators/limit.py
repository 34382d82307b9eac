"""Limit: keep only the beginning of the data."""

from typing import Iterator, List, Optional

from ..errors import ConfigError, Problem
from ..messages import Episode
from ..registry import registry
from .mutator import Episodes


@registry.mutators("thincdialog.Limit.v1")
class Limit:
    """Keep the first episodes or examples of a split, and read no further.

    It counts the episodes that the mutators before it return: after
    `thincdialog.Flatten.v1`, each turn is an episode; before it, each conversation is. For
    a random sample in evaluation, see `max_examples` in `[evaluation]`.

    n_episodes (int): Episodes to keep; 0 for any number.
    n_examples (int): Examples to keep, the last episode cut off there; 0 for any number.
    splits (Optional[List[str]]): Splits to cut, such as ["train"]; all if None.
    RAISES (ConfigError): If a number is negative, or both are 0.
    """

    def __init__(
        self, n_episodes: int = 0, n_examples: int = 0, splits: Optional[List[str]] = None
    ):
        if n_episodes < 0 or n_examples < 0 or not n_episodes + n_examples:
            text = f"has n_episodes = {n_episodes} and n_examples = {n_examples}"
            raise ConfigError(
                [Problem("", f"thincdialog.Limit.v1 {text}", "give 1 or more for one of them")]
            )
        self.n_episodes = n_episodes
        self.n_examples = n_examples
        self.splits = splits

    def rewrite(self, episodes: Episodes, split: str) -> Iterator[Episode]:
        """Yield the first episodes."""
        if self.splits is not None and split not in self.splits:
            yield from episodes()
            return
        n_examples = 0
        for number, episode in enumerate(episodes(), start=1):
            if self.n_examples:
                episode = episode[: self.n_examples - n_examples]
                n_examples += len(episode)
            yield episode
            # Stop before the next episode is read: in a stream, reading it may block.
            if number == self.n_episodes or 0 < self.n_examples <= n_examples:
                return
