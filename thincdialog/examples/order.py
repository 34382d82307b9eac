"""Which examples an epoch shows, in which order, and how far it has come."""

import copy
from bisect import bisect_right
from itertools import islice
from typing import (
    Any,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

import numpy as np

from ..errors import DataError
from ..messages import PARTNER, SELF, SILENCE, Message, Turn
from .batch import Batch, gathered
from .candidates import CandidateSampler, WithCandidates
from .draws import block_order, in_share, sample_episodes
from .memory_store import MemoryStore
from .split import Split, Start
from .store import Store, Unit

OrderT = TypeVar("OrderT", bound="EpochOrder")

# Where a copy of a teacher is within its episode, as JSON values.
Place = Dict[str, Any]


class Block(NamedTuple):
    """Some episodes of an epoch, in the order of the epoch.

    store (Store): Holds the episodes.
    order (np.ndarray): Numbers of the store's episodes, int64.
    number (int): Place of the block in the data.
    again (int): How often the data was shown whole before, within the epoch.
    task (int): Number of the task, in a mixture.
    start (Optional[Start]): Where a stream is to be read from to get the block again.
    """

    store: Store
    order: np.ndarray
    number: int = 0
    again: int = 0
    task: int = 0
    start: Optional[Start] = None


NOTHING = Block(MemoryStore(), np.zeros(0, dtype=np.int64), -1)

# Blocks that are wanted again: (again, number), and where each begins.
Wanted = Mapping[Tuple[int, int], Optional[Start]]


def other_data(origin: str) -> DataError:
    """The error for a state that was saved with other data than there is now.

    origin (str): What the data is.
    """
    text = "is not what it was when the state was saved: give the same data to go on"
    return DataError(origin, text)


class EpochOrder:
    """What a teacher asks of the order of one task (``Order``) or of several
    (``MixedOrder``): hands out every episode of an epoch exactly once, whoever asks.

    training (bool): Whether messages have `labels` to learn from.
    origin (str): What the data is, for error messages.
    is_endless (bool): Whether the epoch never ends.
    is_single_turn (bool): Whether all episodes have one turn.
    n_episodes, n_examples (Optional[int]): Of an epoch; None while unknown for a stream, or
        endless.
    run (object): A token of the epoch: copies see by it that their episode is of another one.
    epoch, seed (int): Which epoch it is; together they decide on all.
    """

    training: bool
    origin: str
    is_endless: bool
    is_single_turn: bool
    n_episodes: Optional[int]
    n_examples: Optional[int]
    run: object
    epoch: int
    seed: int

    def start(self, epoch: int, seed: int) -> None:
        """Begin an epoch; nothing is read before the first episode is asked for."""
        raise NotImplementedError

    def share_of(self: OrderT, worker: int, n_workers: int) -> OrderT:
        """A worker's part of the same, with a place of its own (see ``Teacher.share_of``)."""
        raise NotImplementedError

    def is_exhausted(self) -> bool:
        """Whether every episode was handed out."""
        raise NotImplementedError

    def take_one(self) -> Tuple[Block, int]:
        """The next episode's block and number; call ``is_exhausted`` before."""
        raise NotImplementedError

    def read(self, n_rows: int) -> Batch:
        """The next single-turn examples; fewer, or none, at the end of the epoch."""
        raise NotImplementedError

    def message(self, block: Block, row: int) -> Message:
        """A row of a block as a message, without `episode_done`."""
        raise NotImplementedError

    def texts(self) -> Iterator[str]:
        """Every text and label of the whole data once, in its order; of an endless task, of
        the first block; so do those below."""
        raise NotImplementedError

    def episodes(self) -> Iterator[List[Message]]:
        """Every episode in the order of the data."""
        raise NotImplementedError

    def all_labels(self) -> Iterator[str]:
        """Every label of these."""
        raise NotImplementedError

    def place(self, block: Block, row: int, end: int) -> Place:
        """Where in its episode a copy is: at a row of a block, before the row ``end``."""
        raise NotImplementedError

    def state(self) -> Dict[str, Any]:
        """How far the epoch has come, as JSON values: a few whole numbers, and of a stream
        where its file is to be opened."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, Any], places: Sequence[Place]) -> List[Block]:
        """Go to where a state was taken.

        places (Sequence[Place]): Where copies were.
        RETURNS (List[Block]): The blocks of their episodes.
        RAISES (DataError): If the data has no such place.
        """
        raise NotImplementedError

    def examples(self) -> Iterator[Message]:
        """Every example in the order of the data, flattened: a turn within an episode
        carries the turns before it as `context`."""
        for episode in self.episodes():
            history: List[Turn] = []
            for message in episode:
                message["episode_done"] = True
                if len(episode) > 1:
                    message.setdefault("context", list(history))
                    if message.get("text") != SILENCE:
                        history.append((PARTNER, message.get("text", "")))
                    history.extend((SELF, label) for label in message.all_labels[:1])
                yield message


class Order(EpochOrder):
    """The order of one split of one task.

    data (Split): Where the episodes come from.
    training (bool): Shuffle; else keep the order of the data.
    max_examples (int): Size of the sample; 0 for all.
    n_candidates (int): Candidates drawn for each example that has none; 0 for none.
    seed (int): Seed of the sample, of the candidates, and of the first epoch.
    task (int): Number of the task, in a mixture.
    """

    # Whose share of the episodes it is, and of how many.
    worker, n_workers = 0, 1

    def __init__(
        self,
        data: Split,
        training: bool = False,
        max_examples: int = 0,
        n_candidates: int = 0,
        seed: int = 0,
        task: int = 0,
    ):
        self.data, self.training = data, training
        self.max_examples, self.n_candidates = max_examples, n_candidates
        self.task = task
        self.origin = data.origin
        self.is_endless = training and data.endless
        self._sample_seed = seed
        self._picked: Optional[np.ndarray] = None
        self._sampler: Optional[CandidateSampler] = None
        self._held: Optional[WithCandidates] = None
        self.start(0, seed)

    def as_task(self, number: int) -> "Order":
        """The same as one task of a mixture, with a place in the epoch of its own."""
        task = copy.copy(self)
        task.task = number
        task.start(0, self.seed)
        return task

    def share_of(self, worker: int, n_workers: int) -> "Order":
        # What is read or drawn at first use is there before several threads want it.
        self.shown(NOTHING.store if self.data.streaming else self.data.store())
        share = copy.copy(self)
        share.worker, share.n_workers = worker, n_workers
        share.start(0, self.seed)
        return share

    # --- what is shown ------------------------------------------------------------------

    @property
    def is_single_turn(self) -> bool:  # type: ignore[override]
        return self.data.is_single_turn

    def picked(self) -> Optional[np.ndarray]:
        """Numbers of the sampled episodes, ascending, int64; None for all of them."""
        if self.max_examples and self._picked is None:
            lengths = self.data.lengths()
            self._picked = sample_episodes(lengths, self.max_examples, self._sample_seed)
        return self._picked

    def shown(self, store: Store) -> Store:
        """A store of the data with the candidates that are drawn, if any are."""
        if not self.n_candidates:
            return store
        if self._sampler is None:
            replies = self.data.replies()
            self._sampler = CandidateSampler(replies, self.n_candidates, self._sample_seed)
        if self._held is None or self._held.store is not store:
            self._held = WithCandidates(store, self._sampler)
        return self._held

    def message(self, block: Block, row: int) -> Message:
        return block.store.message(row)

    @property
    def n_episodes(self) -> Optional[int]:  # type: ignore[override]
        lengths = self._lengths()
        return None if lengths is None else len(lengths)

    @property
    def n_examples(self) -> Optional[int]:  # type: ignore[override]
        lengths = self._lengths()
        return None if lengths is None else int(lengths.sum())

    def _lengths(self) -> Optional[np.ndarray]:
        """Of all episodes that are shown, if known."""
        if self.is_endless or not self.data.is_counted:
            return None
        lengths, picked = self.data.lengths(), self.picked()
        return lengths if picked is None else lengths[picked]

    def size(self, unit: Unit) -> Optional[int]:
        """All episodes together, in a unit; None for a stream, which would have to be read."""
        if self.data.streaming:
            return None
        bounds, picked = self.data.store().sizes(unit), self.picked()
        if picked is None:
            return bounds[-1]
        return sum(bounds[number + 1] - bounds[number] for number in picked.tolist())

    def texts(self) -> Iterator[str]:
        return self.data.texts(1 if self.is_endless else None)

    def episodes(self) -> Iterator[List[Message]]:
        for store, episodes in self._whole():
            starts = store.starts
            for episode in episodes.tolist():
                rows = range(starts[episode], starts[episode + 1])
                yield [
                    as_shown(store.message(row), self.training, row + 1 == rows.stop)
                    for row in rows
                ]

    def all_labels(self) -> Iterator[str]:
        for store, episodes in self._whole():
            starts = np.asarray(store.starts)
            counts = starts[episodes + 1] - starts[episodes]
            firsts = starts[episodes] - (counts.cumsum() - counts)
            rows = firsts.repeat(counts) + np.arange(int(counts.sum()))
            for labels in store.cells("labels", rows):
                yield from labels or ()

    def _whole(self) -> Iterator[Tuple[Store, np.ndarray]]:
        """All episodes in the order of the data, store by store."""
        parts = self.data.blocks(self.picked())
        for _, store, members, _ in islice(parts, 1 if self.is_endless else None):
            yield self.shown(store), members

    # --- the epoch ----------------------------------------------------------------------

    def start(self, epoch: int, seed: int) -> None:
        self.run = object()
        self.epoch, self.seed = epoch, seed
        self._begin(0)

    def start_again(self) -> None:
        """Show the data once more within the same epoch; copies keep their episodes."""
        self._begin(self.again + 1)

    def _begin(self, again: int) -> None:
        self.again = again
        self._remaining: Optional[Iterator[Block]] = self._blocks(again)
        self._block = NOTHING
        self._position = 0

    def _blocks(
        self,
        again: int,
        some: Collection[int] = (),
        first: int = 0,
        start: Optional[Start] = None,
    ) -> Iterator[Block]:
        """The episodes in the order of the epoch.

        again (int): How often they were shown before, within the epoch.
        some (Collection[int]): Numbers of blocks to give, ascending.
        first (int): Number of the block from which on all are given.
        start (Optional[Start]): Where the first of these blocks begins, if that is known.
        """
        for number, store, members, own_start in self.data.blocks(self.picked(), start):
            if number < first and number not in some:
                continue
            n, order = len(members), None
            if self.training:
                order = block_order(n, self.seed, self.epoch, number, again)
            if self.n_workers > 1:
                # Who gets what is left over is another one in each block, and task.
                place = (self.worker - number - self.task) % self.n_workers
                is_own = in_share(n, place, self.n_workers, self.seed, number)
                order = np.flatnonzero(is_own) if order is None else order[is_own[order]]
            members = members if order is None else members[order]
            yield Block(self.shown(store), members, number, again, self.task, own_start)

    def is_exhausted(self) -> bool:
        has_begun_again = False
        while self._position >= len(self._block.order):
            following = next(self._remaining, None) if self._remaining is not None else None
            if following is not None:
                self._block, self._position = following, 0
            elif self.is_endless and not has_begun_again:
                # Once: a worker's share of a few episodes may have nothing in it.
                self.start_again()
                has_begun_again = True
            else:
                # Lets go of the last block of a stream.
                self._remaining = None
                self._block, self._position = NOTHING, 0
                return True
        return False

    def head(self) -> Tuple[Block, int]:
        """The episode that comes next, and its block; call ``is_exhausted`` before."""
        return self._block, int(self._block.order[self._position])

    def take_one(self) -> Tuple[Block, int]:
        head = self.head()
        self._position += 1
        return head

    def read(self, n_rows: int) -> Batch:
        parts: List[Batch] = []
        n_missing = n_rows
        while n_missing > 0 and not self.is_exhausted():
            start, self._position = self._position, self._position + n_missing
            rows = self._block.order[start : self._position]
            parts.append(Batch(self._block.store, rows, self.training))
            n_missing -= len(rows)
        return gathered(parts)

    # --- going on from a state ------------------------------------------------------------

    def place(self, block: Block, row: int, end: int) -> Place:
        return {
            "again": block.again,
            "block": block.number,
            "start": block.start,
            "row": row,
            "end": end,
            "id": _id_of(block.store, row),
        }

    def state(self) -> Dict[str, Any]:
        return {
            "epoch": self.epoch,
            "seed": self.seed,
            "again": self.again,
            "block": None if self._remaining is None else self._block.number,
            "position": min(self._position, len(self._block.order)),
            "episodes": len(self._block.order),
            "start": self._block.start,
        }

    def restore(self, state: Mapping[str, Any], places: Sequence[Place]) -> List[Block]:
        keys = [(place["again"], place["block"]) for place in places]
        found = self.go_to(state, dict(zip(keys, (place["start"] for place in places))))
        blocks = [found[key] for key in keys]
        for block, place in zip(blocks, places):
            self.check(block, place)
        return blocks

    def check(self, block: Block, place: Place) -> None:
        """RAISES (DataError): If another row stands at a place, or its episode ends
        elsewhere."""
        row, starts = place["row"], block.store.starts
        is_there = row < starts[-1] and starts[bisect_right(starts, row)] == place["end"]
        if not is_there or _id_of(block.store, row) != place["id"]:
            raise other_data(self.origin)

    def go_to(self, state: Mapping[str, Any], wanted: Wanted) -> Dict[Tuple[int, int], Block]:
        """Go to where a state was taken. The data is read once, from the first block that
        is wanted, and once more for each time that it was shown before and a copy is still
        within.

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
            self._remaining = self._read_blocks(shown, starts[shown], found)
        self.again = again
        if number is None:
            self._remaining = None
        elif number >= 0:
            self._block = found.get((again, number), NOTHING)
        if not set(wanted) <= found.keys() or len(self._block.order) != state["episodes"]:
            raise other_data(self.origin)
        return found

    def _read_blocks(
        self,
        again: int,
        starts: Mapping[int, Optional[Start]],
        found: Dict[Tuple[int, int], Block],
    ) -> Iterator[Block]:
        """Fill in blocks, by number and where they begin; gives what comes after them."""
        last = max(starts, default=-1)
        first = starts[min(starts)] if starts else None
        blocks = self._blocks(again, starts.keys(), last + 1, first)
        for number in sorted(starts):
            block = next(blocks, None)
            if block is not None:
                found[again, number] = block
        return blocks


def as_shown(message: Message, training: bool, is_last: bool) -> Message:
    """A row's message as a teacher says it.

    message (Message): From a store; changed.
    training (bool): Whether its `labels` are to be learnt from; else they are `eval_labels`.
    is_last (bool): Whether it ends its episode.
    """
    if not training and "labels" in message:
        message["eval_labels"] = message.pop("labels")
    message["episode_done"] = is_last
    return message


def _id_of(store: Store, row: int) -> str:
    return str(store.cells("id", np.array([row]))[0])
