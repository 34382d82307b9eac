"""Hold out conversations of the training files as the splits `dev` and `test`."""

import hashlib
from dataclasses import dataclass
from typing import Any, List, Mapping

from ..errors import Problem
from ..messages import Episode


def conversation_of(episode: Episode) -> str:
    """Return the name of the conversation that an episode is a part of."""
    name = str(episode[0]["id"])
    return both_sides(name.rpartition("/")[0] or name)


def both_sides(name: str) -> str:
    """Return the name of a conversation without the suffix of its episodes, `#first` or
    `#second`."""
    return name.removesuffix("#first").removesuffix("#second")


@dataclass(frozen=True)
class HeldOut:
    """Assign each conversation to a split by a hash of the seed and its name (or its number if it
    has no name). So conversations need not be counted first, a stream is split like data in
    memory, and conversations with the same name stay together.

    dev_share (float): Fraction of the conversations for `dev`; 0.0 for none.
    test_share (float): Fraction of the conversations for `test`; 0.0 for none.
    seed (int): Seed of the draw.
    """

    dev_share: float = 0.0
    test_share: float = 0.0
    seed: int = 0

    @property
    def splits(self) -> List[str]:
        """The splits that the training files are cut into; none if nothing is held out."""
        shares = {"dev": self.dev_share, "test": self.test_share}
        found = [split for split, share in shares.items() if share]
        return ["train", *found] if found else []

    def problems(self, teacher: str, given: Mapping[str, Any]) -> List[Problem]:
        """Return the problems of the shares, each with advice.

        teacher (str): Registered name of the teacher that has the shares.
        given (Mapping[str, Any]): The data of each split, None if there is none.
        """
        found = []
        for name, split in (("dev_share", "dev"), ("test_share", "test")):
            share = getattr(self, name)
            if not 0.0 <= share < 1.0:
                found.append((name, f"is {share}", "give 0.0 or more, but less than 1.0"))
            elif share and given.get(split) is not None:
                text = f"is given together with '{split}'"
                found.append((name, text, f"set {name} = 0.0, or {split} = null"))
        if not found and self.dev_share + self.test_share >= 1.0:
            text = f"is {self.dev_share} and 'test_share' is {self.test_share}"
            found.append(("dev_share", text, "lower them, or nothing is left to train on"))
        return [Problem("", f"'{name}' of {teacher} {text}", hint) for name, text, hint in found]

    def split_of(self, episode: Episode) -> str:
        """Return the split that an episode belongs to."""
        return self.split_named(conversation_of(episode))

    def split_named(self, name: str) -> str:
        """Return the split that a conversation of this name belongs to."""
        digest = hashlib.blake2b(f"{self.seed}/{name}/0".encode(), digest_size=8).digest()
        draw = int.from_bytes(digest, "big") / 2**64
        if draw < self.dev_share:
            return "dev"
        return "test" if draw < self.dev_share + self.test_share else "train"

    def about(self, split: str) -> str:
        """Describe how a split is drawn; "" for no split."""
        if not split:
            return ""
        shares = {"dev": self.dev_share, "test": self.test_share}
        share = shares.get(split, 1.0 - self.dev_share - self.test_share)
        return f"{100 * share:.3g} % of the training conversations, drawn with dev_seed {self.seed}"
