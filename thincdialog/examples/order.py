"""The order of the examples of an epoch, and the position in it."""

import copy
from bisect import bisect_right
from collections import Counter
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..errors import DataError
from ..messages import PARTNER, SELF, SILENCE, Message, Turn
from .batch import Batch, gathered
from .blocks import Block
from .candidates import CandidateSampler, WithCandidates
from .draws import block_order, in_share, sample_episodes
from .encoded import slice_places
from .joined_store import JoinedStore
from .reading import BEGIN, Start
from .shared_passes import SharedPasses
from .split import Split
from .store import Rows, Store, Unit

# Position of a copy of a teacher within its episode, as JSON values.
Place = Dict[str, Any]

NOTHING = Block(Rows({}, 0), np.zeros(0, dtype=np.int64), -1)


class Order:
    """Hand out every episode of an epoch of one split exactly once. (For several tasks, see
    ``Mixture``.)

    data (Split): Source of the episodes.
    training (bool): Whether to shuffle the episodes and to give messages `labels` to learn from.
        Otherwise, episodes keep the order of the data, and messages have `eval_labels`.
    max_examples (int): Number of examples to sample; 0 for all.
    n_candidates (int): Number of candidates to draw for each example that has none; 0 to draw
        none.
    seed (int): Seed of the sample, of the candidates, and of the first epoch.
    origin (str): Description of the data, for error messages.
    is_endless (bool): Whether the epoch never ends.
    run (object): A token that is replaced in each epoch, so that copies notice that their episode
        belongs to an earlier epoch.
    epoch, seed (int): Number of the epoch, and its seed; together they determine the order.
    """

    # Number of the worker whose share of the episodes this is, and number of workers; number of
    # the task in a mixture, and the prefix of the ids of its examples.
    worker, n_workers = 0, 1
    task, prefix = 0, ""
    # Lets threads with shares of a stream read it together; number of the thread, and number of
    # epochs started, which identifies the pass.
    passes: Optional[SharedPasses] = None
    thread = n_started = 0
    # By block number, the ids of its rows in the order of the data; during ``keeping_ids``.
    ids: Optional[Dict[int, List[str]]] = None

    def __init__(
        self,
        data: Split,
        training: bool = False,
        max_examples: int = 0,
        n_candidates: int = 0,
        seed: int = 0,
    ):
        self.data, self.training = data, training
        self.max_examples, self.n_candidates = max_examples, n_candidates
        self.origin = data.origin
        self.is_endless = training and data.endless
        self._drawn_seed = seed
        self.start(0, seed)

    def as_task(self, number: int, prefix: str) -> "Order":
        """Return a copy as one task of a mixture, with its own position in the epoch."""
        task = copy.copy(self)
        task.__dict__.pop("held", None)
        task.task, task.prefix = number, prefix
        task.start(0, self.seed)
        return task

    def share_of(self, worker: int, n_workers: int, reads_apart: bool = False) -> "Order":
        """Return a worker's share, with its own position (see ``Teacher.share_of``)."""
        # Read the data and draw candidates now, before several threads need them.
        self.sampler if self.data.streaming else self.held  # noqa: B018
        share = copy.copy(self)
        is_whole = reads_apart and not self.max_examples
        section = self.data.section(worker, n_workers) if is_whole else None
        if section is not None:
            share.data = section
        else:  # If this order is a share already, return a share of this share.
            share.worker = self.worker + self.n_workers * worker
            share.n_workers = self.n_workers * n_workers
        share.start(0, self.seed)
        return share

    def shares(self, n_workers: int) -> "List[Order]":
        """Return one share for each of several threads, which read a stream together, only once."""
        shares = [self.share_of(worker, n_workers) for worker in range(n_workers)]
        passes = SharedPasses(n_workers)
        for number, share in enumerate(shares):
            share.passes, share.thread = passes, number
        return shares

    # --- the data -----------------------------------------------------------------------

    @property
    def is_single_turn(self) -> bool:
        """Whether all episodes have one turn."""
        return self.data.is_single_turn

    @cached_property
    def picked(self) -> Optional[np.ndarray]:
        """Numbers of the sampled episodes, ascending, int64; None for all of them."""
        if not self.max_examples:
            return None
        self.sampler  # noqa: B018  # Counts a stream in the same pass that reads its replies.
        return sample_episodes(self.data.lengths(), self.max_examples, self._drawn_seed)

    @cached_property
    def sampler(self) -> Optional[CandidateSampler]:
        """The sampler of candidates; None if no candidates are drawn."""
        if not self.n_candidates:
            return None
        return CandidateSampler(self.data.replies(), self.n_candidates, self._drawn_seed)

    @cached_property
    def held(self) -> Store:
        """Store of all data as agents see it. Not for streams."""
        return self._as_shown(self.data.store())

    def _as_shown(self, store: Store) -> Store:
        if self.sampler is not None:
            store = WithCandidates(store, self.sampler)
        return JoinedStore([store], self.prefix) if self.prefix else store

    @property
    def n_episodes(self) -> Optional[int]:
        """Number of episodes of an epoch; None if it is endless, or if the data is a stream that
        was not counted yet."""
        lengths = self._lengths()
        return None if lengths is None else len(lengths)

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples of an epoch; None if it is endless, or if the data is a stream that
        was not counted yet."""
        lengths = self._lengths()
        return None if lengths is None else int(lengths.sum())

    def _lengths(self) -> Optional[np.ndarray]:
        if self.is_endless or not self.data.is_counted:
            return None
        lengths = self.data.lengths()
        return lengths if self.picked is None else lengths[self.picked]

    def size(self, unit: Unit) -> Optional[int]:
        """Return the size of all episodes in a unit; None for a stream, to avoid reading it."""
        if self.data.streaming:
            return None
        bounds = self.data.store().sizes(unit)
        if self.picked is None:
            return int(bounds[-1])
        return sum(int(bounds[number + 1] - bounds[number]) for number in self.picked.tolist())

    def texts(self) -> Iterator[str]:
        """Yield every text and label of the whole data once, in the order of the data. For an
        endless task, this method and the following ones use only the first block."""
        return self.data.texts(1 if self.is_endless else None)

    def episodes(self) -> Iterator[List[Message]]:
        """Yield every episode in the order of the data."""
        for store, episodes in self._all_episodes():
            starts = store.starts
            for episode in episodes.tolist():
                rows = range(starts[episode], starts[episode + 1])
                yield [
                    as_shown(store.message(row), self.training, row + 1 == rows.stop)
                    for row in rows
                ]

    def examples(self) -> Iterator[Message]:
        """Yield every example in the order of the data (see ``flattened``)."""
        return flattened(self.episodes())

    def all_labels(self) -> Iterator[str]:
        """Yield every label of all examples, in the order of the data."""
        for store, episodes in self._all_episodes():
            for labels in store.cells("labels", _rows_of(store, episodes)):
                yield from labels or ()

    def frequent_labels(self, most: int) -> List[str]:
        """Return the distinct labels of all examples, the most frequent first; equally frequent
        labels are in the order of first occurrence.

        most (int): Maximum number of labels to return.
        """
        built = self.data.built_store if self.picked is None else None
        found = None if built is None else built.frequent_labels(most)
        return most_frequent(self.all_labels(), most) if found is None else found

    def _all_episodes(self) -> Iterator[Tuple[Store, np.ndarray]]:
        """Yield all episodes in the order of the data, store by store."""
        picked, beginning, n_known = self.picked, self.data.beginning, 0
        if beginning is not None and not self.is_endless:
            known = np.arange(beginning.n_episodes)
            if picked is not None:
                known = picked[picked < len(known)]
            n_known = len(known)
            yield self._as_shown(beginning), known
            if self.data.is_short:
                return
        blocks = self.data.blocks(picked)
        for block in islice(blocks, 1 if self.is_endless else None):
            yield self._as_shown(block.store), block.order[n_known:]
            n_known = max(0, n_known - len(block.order))

    @contextmanager
    def keeping_ids(self) -> Iterator[Dict[int, List[str]]]:
        """Keep the ids of all blocks that are read while the context is active, by this order or by
        shares that are made from it in the context.

        YIELDS (Dict[int, List[str]]): By block number, the ids of its rows in the order of the
            data.
        """
        self.ids = {}
        try:
            yield self.ids
        finally:
            self.ids = None

    # --- the epoch ----------------------------------------------------------------------

    def start(self, epoch: int, seed: int) -> None:
        """Begin an epoch. Nothing is read before the first episode is requested."""
        self.run = object()
        self.epoch, self.seed = epoch, seed
        self.n_started += 1
        self._begin(0)

    def start_again(self) -> None:
        """Show the data again, within the same epoch. Copies keep their episodes."""
        self._begin(self.again + 1)

    def _begin(self, again: int) -> None:
        self.again = again
        self._remaining: Optional[Iterator[Block]] = self._blocks(again)
        self._block = NOTHING
        self._position = 0

    def _blocks(self, again: int, start: Optional[Start] = None) -> Iterator[Block]:
        """Yield the episodes in the order of the epoch.

        again (int): Number of times that the whole data was already shown within the epoch.
        start (Optional[Start]): Where to begin in a stream; None for its beginning.
        """
        read = partial(self.data.blocks, self.picked, start, is_encoded=True)
        # If the epoch resumes from a state, each thread reads the stream on its own.
        if self.passes is not None and self.data.streaming and start is None:
            number = self.n_started, again
            blocks: Iterable[Block] = self.passes.blocks(number, self.thread, read)
        else:
            blocks = read()
        if self.training and not self.data.window and not self.data.streaming:
            everything = np.arange(self.held.n_episodes) if self.picked is None else self.picked
            blocks = [Block(self.held, everything, 0)]
        for block in blocks:
            yield self._own_share(block, again)

    def _own_share(self, block: Block, again: int) -> Block:
        """Return the share of a block that this worker shows, in the order of the epoch."""
        n, number, order = len(block.order), block.number, None
        if self.training:
            order = block_order(n, self.seed, self.epoch, number, again)
        if self.n_workers > 1:
            # In each block and task, the remaining episodes go to different workers.
            place = (self.worker - number - self.task) % self.n_workers
            is_own = in_share(n, place, self.n_workers, self.seed, number)
            order = np.flatnonzero(is_own) if order is None else order[is_own[order]]
        members = block.order if order is None else block.order[order]
        store = self._as_shown(block.store) if self.data.streaming else self.held
        if self.ids is not None:
            self.ids[number] = store.cells("id", _rows_of(store, block.order))
        return block._replace(store=store, order=members, again=again, task=self.task)

    def is_exhausted(self) -> bool:
        """Return whether every episode was handed out."""
        has_begun_again = False
        while self._position >= len(self._block.order):
            following = next(self._remaining, None) if self._remaining is not None else None
            if following is not None:
                self._block, self._position = following, 0
            elif self.is_endless and not has_begun_again:
                # Start again only once, because a worker's share of a few episodes may be empty.
                self.start_again()
                has_begun_again = True
            else:
                # Free the last block of a stream.
                self._remaining = None
                self._block, self._position = NOTHING, 0
                return True
        return False

    def head(self) -> Tuple[Block, int]:
        """Return the block and the number of the next episode. Call ``is_exhausted`` first."""
        return self._block, int(self._block.order[self._position])

    def take_one(self) -> Tuple[Block, int]:
        """Take the next episode, and return its block and number. Call ``is_exhausted`` first."""
        block, position = self._block, self._position
        self._position = position + 1
        return block, block.order.item(position)

    def read(self, n_rows: int) -> Batch:
        """Return the next examples of single-turn data; fewer, or none, at the end of the epoch."""
        parts: List[Batch] = []
        n_missing = n_rows
        while n_missing > 0 and not self.is_exhausted():
            start, self._position = self._position, self._position + n_missing
            rows = self._block.order[start : self._position]
            parts.append(Batch(self._block.store, rows, self.training))
            n_missing -= len(rows)
        return gathered(parts)

    # --- resuming from a state ------------------------------------------------------------

    def place(self, block: Block, row: int, end: int) -> Place:
        """Return the position of a copy in its episode, as JSON values.

        row (int): Number of the current row in the block's store.
        end (int): Number of the row after the last row of the episode.
        """
        return {
            "again": block.again,
            "block": block.number,
            "start": block.start,
            "row": row,
            "end": end,
            "id": _id_of(block.store, row),
        }

    def state(self) -> Dict[str, Any]:
        """Return the position in the epoch, as JSON values: a few integers, and for a stream the
        place to start reading."""
        return {
            "epoch": self.epoch,
            "seed": self.seed,
            "again": self.again,
            "block": None if self._remaining is None else self._block.number,
            "position": min(self._position, len(self._block.order)),
            "episodes": len(self._block.order),
            "start": self._block.start,
            "checksum": self._block.store.sample_checksum,
        }

    def restore(self, state: Mapping[str, Any], places: Sequence[Place]) -> List[Block]:
        """Restore the position of a state. The data is read once, from the first needed block
        on, and once more for each earlier pass of this epoch that a copy is still in.

        places (Sequence[Place]): Positions of the copies.
        RETURNS (List[Block]): The blocks of the copies' episodes.
        RAISES (DataError): If the data has no such position.
        """
        self.start(state["epoch"], state["seed"])
        self.again, self._position, number = state["again"], state["position"], state["block"]
        # For each pass over the data: the numbers of the needed blocks, and where each begins.
        wanted: Dict[int, Dict[int, Optional[Start]]] = {self.again: {}}
        for place in places:
            wanted.setdefault(place["again"], {})[place["block"]] = place["start"]
        if number is not None and number >= 0:
            wanted[self.again][number] = state["start"]
        found: Dict[Tuple[int, int], Block] = {}
        for again, starts in sorted(wanted.items()):
            self._remaining = self._blocks(again, starts[min(starts)] if starts else BEGIN)
            for block in self._remaining if starts else ():
                found[again, block.number] = block
                if block.number >= max(starts):
                    break
        if number is None:
            self._remaining = None
        elif number >= 0:
            self._block = found.get((self.again, number), NOTHING)
        blocks = [found.get((place["again"], place["block"]), NOTHING) for place in places]
        known = len(self._block.order), self._block.store.sample_checksum
        is_same = known == (state["episodes"], state["checksum"])
        if not is_same or not all(map(_is_there, blocks, places)):
            text = "is not the same as when the state was saved: give the same data to resume"
            raise DataError(self.origin, text)
        return blocks


def as_shown(message: Message, training: bool, is_last: bool) -> Message:
    """Return a row's message as a teacher shows it.

    message (Message): Message from a store; modified in place.
    training (bool): Whether to keep its `labels` for training; otherwise, they become
        `eval_labels`.
    is_last (bool): Whether the message ends its episode.
    """
    if not training and "labels" in message:
        message["eval_labels"] = message.pop("labels")
    message["episode_done"] = is_last
    return message


def flattened(episodes: Iterable[List[Message]]) -> Iterator[Message]:
    """Yield the messages of episodes as single examples, each with the earlier turns of its
    episode as `context`."""
    for episode in episodes:
        # The context of the first message, if the data has one, comes before all turns.
        history: List[Turn] = list(episode[0].get("context", ())) if episode else []
        for message in episode:
            message["episode_done"] = True
            if len(episode) > 1:
                message.setdefault("context", list(history))
                if message.get("text") != SILENCE:
                    history.append((PARTNER, message.get("text", "")))
                history.extend((SELF, label) for label in message.all_labels[:1])
            yield message


def most_frequent(labels: Iterable[str], most: int) -> List[str]:
    """Return the distinct labels, the most frequent first; equally frequent labels are in the
    order of first occurrence.

    most (int): Maximum number of labels to return.
    """
    return [label for label, _ in Counter(labels).most_common(most)]


def _rows_of(store: Store, episodes: np.ndarray) -> np.ndarray:
    if store.is_single_turn:
        return episodes
    starts = np.asarray(store.starts)
    return slice_places(starts[episodes], starts[episodes + 1] - starts[episodes])


def _is_there(block: Block, place: Place) -> bool:
    """Return whether the data still has a copy's episode at its place: the same row, and the same
    end of the episode."""
    row, starts = place["row"], block.store.starts
    if row >= starts[-1] or starts[bisect_right(starts, row)] != place["end"]:
        return False
    return _id_of(block.store, row) == place["id"]


def _id_of(store: Store, row: int) -> str:
    return str(store.cells("id", np.array([row]))[0])
