"""The place in an epoch that all copies of a teacher share."""

from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .store import EpisodeStore, Field


class Block(NamedTuple):
    """Some episodes of an epoch, in the order of the epoch.

    store (EpisodeStore): Holds the episodes.
    fields (List[Field]): The store's columns as messages show them.
    order (Sequence[int]): Numbers of the store's episodes.
    """

    store: EpisodeStore
    fields: List[Field]
    order: Sequence[int]


NOTHING = Block(EpisodeStore(), [], ())

Blocks = Callable[[int, int], Iterator[Block]]


class Cursor:
    """Hands out every episode of an epoch exactly once, whoever asks.

    blocks (Blocks): Gives the blocks of the epoch (epoch, seed).
    epoch (int): Epoch to begin with.
    seed (int): Its seed.
    """

    def __init__(self, blocks: Blocks, epoch: int, seed: int):
        self._blocks = blocks
        self.start(epoch, seed)

    def start(self, epoch: int, seed: int) -> None:
        """Begin an epoch; nothing is read before the first episode is asked for."""
        # A token of the epoch: copies see by it that their episode is of another one.
        self.run = object()
        self._remaining: Optional[Iterator[Block]] = self._blocks(epoch, seed)
        self._block = NOTHING
        self._position = 0

    def is_exhausted(self) -> bool:
        """Whether every episode was handed out."""
        while self._position >= len(self._block.order):
            following = next(self._remaining, None) if self._remaining is not None else None
            if following is None:
                # Lets go of the last block of a stream.
                self._remaining = None
                self._block = NOTHING
                self._position = 0
                return True
            self._block = following
            self._position = 0
        return False

    def take(self, n_episodes: int) -> Tuple[Block, Sequence[int]]:
        """Up to n episodes of one block, at least one; call ``is_exhausted`` before.

        RETURNS (Tuple[Block, Sequence[int]]): The block, and the episodes' numbers.
        """
        start = self._position
        self._position = start + n_episodes
        return self._block, self._block.order[start : self._position]
