"""The place in an epoch that all copies of a teacher share."""

from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from ..errors import DataError
from .split import Start
from .store import EpisodeStore, Field


class Block(NamedTuple):
    """Some episodes of an epoch, in the order of the epoch.

    store (EpisodeStore): Holds the episodes.
    fields (List[Field]): The store's columns as messages show them.
    order (Sequence[int]): Numbers of the store's episodes.
    number (int): Place of the block in the data.
    again (int): How often the data was shown whole before, within the epoch.
    task (int): Number of the task, in a mixture.
    start (Optional[Start]): Where a stream is to be read from to get the block again.
    """

    store: EpisodeStore
    fields: List[Field]
    order: Sequence[int]
    number: int = 0
    again: int = 0
    task: int = 0
    start: Optional[Start] = None


NOTHING = Block(EpisodeStore(), [], (), -1)


def other_data(origin: str) -> DataError:
    """The error for a state that was saved with other data than there is now.

    origin (str): What the data is.
    """
    text = "is not what it was when the state was saved: give the same data to go on"
    return DataError(origin, text)


# Gives some blocks of (epoch, seed, again) by number, then all from another number on. Reads
# from a place on.
Blocks = Callable[[int, int, int, Collection[int], int, Optional[Start]], Iterator[Block]]

# Blocks that are wanted again: (again, number), and where each begins.
Wanted = Mapping[Tuple[int, int], Optional[Start]]


class Cursor:
    """Hands out every episode of an epoch exactly once, whoever asks.

    blocks (Blocks): Gives the blocks of an epoch.
    epoch (int): Epoch to begin with.
    seed (int): Its seed.
    origin (str): What the data is, for error messages.
    is_endless (bool): Whether the data is shown again, in another order, wherever it ends.
    """

    def __init__(
        self, blocks: Blocks, epoch: int, seed: int, origin: str, is_endless: bool = False
    ):
        self._blocks = blocks
        self.origin = origin
        self.is_endless = is_endless
        self.start(epoch, seed)

    def start(self, epoch: int, seed: int) -> None:
        """Begin an epoch; nothing is read before the first episode is asked for."""
        # A token of the epoch: copies see by it that their episode is of another one.
        self.run = object()
        self.epoch = epoch
        self.seed = seed
        self._begin(0)

    def start_again(self) -> None:
        """Show the data once more within the same epoch; copies keep their episodes."""
        self._begin(self.again + 1)

    def _begin(self, again: int) -> None:
        self.again = again
        self._remaining: Optional[Iterator[Block]] = self._blocks(
            self.epoch, self.seed, again, (), 0, None
        )
        self._block = NOTHING
        self._position = 0

    def is_exhausted(self) -> bool:
        """Whether every episode was handed out."""
        has_begun_again = False
        while self._position >= len(self._block.order):
            following = next(self._remaining, None) if self._remaining is not None else None
            if following is not None:
                self._block = following
                self._position = 0
            elif self.is_endless and not has_begun_again:
                # Once: a worker's share of a few episodes may have nothing in it.
                self.start_again()
                has_begun_again = True
            else:
                # Lets go of the last block of a stream.
                self._remaining = None
                self._block = NOTHING
                self._position = 0
                return True
        return False

    def head(self) -> Tuple[Block, int]:
        """The episode that comes next, and its block; call ``is_exhausted`` before."""
        return self._block, int(self._block.order[self._position])

    def take(self, n_episodes: int) -> Tuple[Block, Sequence[int]]:
        """Up to n episodes of one block, at least one; call ``is_exhausted`` before.

        RETURNS (Tuple[Block, Sequence[int]]): The block, and the episodes' numbers.
        """
        start = self._position
        self._position = start + n_episodes
        return self._block, self._block.order[start : self._position]

    def state(self) -> Dict[str, Any]:
        """The place, as JSON values."""
        return {
            "epoch": self.epoch,
            "seed": self.seed,
            "again": self.again,
            "block": None if self._remaining is None else self._block.number,
            "position": min(self._position, len(self._block.order)),
            "episodes": len(self._block.order),
            "start": self._block.start,
        }

    def restore(self, state: Mapping[str, Any], wanted: Wanted) -> Dict[Tuple[int, int], Block]:
        """Go to a place. The data is read once, from the first block that is wanted, and
        once more for each time that it was shown before and a copy is still within.

        state (Mapping[str, Any]): From ``state``.
        wanted (Wanted): Blocks that copies are in.
        RETURNS (Dict[Tuple[int, int], Block]): These blocks.
        RAISES (DataError): If the data has no such place.
        """
        self.start(state["epoch"], state["seed"])
        again, number, self._position = state["again"], state["block"], state["position"]
        starts: Dict[int, Dict[int, Optional[Start]]] = {again: {}}
        for (earlier, wanted_number), start in wanted.items():
            starts.setdefault(earlier, {})[wanted_number] = start
        if number is not None and number >= 0:
            starts[again][number] = state["start"]
        found: Dict[Tuple[int, int], Block] = {}
        for shown in sorted(starts):
            self._remaining = self._read(shown, starts[shown], found)
        self.again = again
        if number is None:
            self._remaining = None
        elif number >= 0:
            self._block = found.get((again, number), NOTHING)
        if not set(wanted) <= found.keys() or len(self._block.order) != state["episodes"]:
            raise other_data(self.origin)
        return found

    def _read(
        self,
        again: int,
        starts: Mapping[int, Optional[Start]],
        found: Dict[Tuple[int, int], Block],
    ) -> Iterator[Block]:
        """Fill in blocks, by number and where they begin; gives what comes after them."""
        last = max(starts, default=-1)
        first = starts[min(starts)] if starts else None
        blocks = self._blocks(self.epoch, self.seed, again, starts.keys(), last + 1, first)
        for number in sorted(starts):
            block = next(blocks, None)
            if block is not None:
                found[again, number] = block
        return blocks
