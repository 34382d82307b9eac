"""What an epoch of a teacher shows: the chosen examples of a split, as messages."""

import copy
from bisect import bisect_right
from itertools import islice
from typing import Any, Collection, Dict, Iterator, List, Optional, Sequence

import numpy as np

from ..columns import PickedColumn
from ..messages import PARTNER, SELF, SILENCE, Message, Turn
from .candidates import CandidateSampler
from .cursor import Block, Cursor, other_data
from .order import block_order, in_share, sample_episodes
from .rows import Columns, Rows, join_rows
from .split import Members, Split, Start
from .store import Unit

# Where a copy is within its episode, as JSON values.
Place = Dict[str, Any]


class Showing:
    """A split with the choices of ``Teacher.for_split`` (see there).

    data (Split): Where the episodes come from.
    training (bool): Shuffle, and call labels `labels`; else `eval_labels`.
    max_examples (int): Size of the sample; 0 for all.
    n_candidates (int): Candidates drawn for each example; 0 for none.
    seed (int): Seed of the sample, of the candidates, and of the first epoch.
    cursor (Cursor): The place in the epoch.
    is_endless (bool): Whether the data is shown again wherever it ends.
    """

    # In a mixture: number and name of the task, and what ids begin with.
    task = 0
    name = ""
    prefix = ""
    # Whose share of the episodes it is, and of how many.
    worker, n_workers = 0, 1

    def __init__(
        self, data: Split, training: bool, max_examples: int, n_candidates: int, seed: int
    ):
        self.data = data
        self.training = training
        self.label_name = "labels" if training else "eval_labels"
        self.max_examples = max_examples
        self.n_candidates = n_candidates
        self.seed = seed
        self.is_endless = training and data.endless
        self._begin()
        self._picked: Optional[List[int]] = None
        self._sampler: Optional[CandidateSampler] = None

    def as_task(self, number: int, name: str) -> "Showing":
        """The same as one task of a mixture, with a place in the epoch of its own.

        number (int): Of the task.
        name (str): Of the task; ids begin with `<name>/`.
        """
        task = copy.copy(self)
        task.task = number
        task.name = name
        task.prefix = f"{name}/"
        task._begin()
        return task

    def share_of(self, worker: int, n_workers: int) -> "Showing":
        """A part of the same, with a place in the epoch of its own (see ``Presenter``).

        worker (int): Number of the worker, from 0.
        n_workers (int): How many share.
        """
        # What is read or drawn at first use is there before several threads want it.
        if not self.data.streaming:
            self.data.store()
        if self.n_candidates:
            self._make_sampler()
        share = copy.copy(self)
        share.worker, share.n_workers = worker, n_workers
        share._begin()
        return share

    def _begin(self) -> None:
        self.cursor = Cursor(self.blocks, 0, self.seed, self.data.origin, self.is_endless)

    @property
    def is_single_turn(self) -> bool:
        """Whether all episodes have one turn."""
        return self.data.is_single_turn

    @property
    def origin(self) -> str:
        """What the data is, for error messages."""
        return self.data.origin

    def picked(self) -> Optional[List[int]]:
        """Numbers of the sampled episodes, ascending; None for all of them."""
        if self.max_examples and self._picked is None:
            lengths = self.data.lengths()
            self._picked = sample_episodes(lengths, self.max_examples, self.seed).tolist()
        return self._picked

    def blocks(
        self,
        epoch: int,
        seed: int,
        again: int = 0,
        some: Collection[int] = (),
        first: int = 0,
        start: Optional[Start] = None,
    ) -> Iterator[Block]:
        """The episodes in the order of an epoch.

        again (int): How often they were shown before, within the epoch.
        some (Collection[int]): Numbers of blocks to give, ascending.
        first (int): Number of the block from which on all are given.
        start (Optional[Start]): Where the first of these blocks begins, if that is known.
        """
        for number, store, members, own_start in self.data.blocks(self.picked(), start):
            if number < first and number not in some:
                continue
            n, train = len(members), self.training
            if train or self.n_workers > 1:
                order = block_order(n, seed, epoch, number, again) if train else np.arange(n)
                if self.n_workers > 1:
                    # Who gets what is left over is another one in each block, and task.
                    place = (self.worker - number - self.task) % self.n_workers
                    order = order[in_share(n, place, self.n_workers, seed, number)[order]]
                members = _as_array(members)[order]
            fields = store.fields(self.label_name)
            yield Block(store, fields, members, number, again, self.task, own_start)

    def message(self, block: Block, turn: int, is_last: bool) -> Message:
        """One turn.

        block (Block): Where it stands.
        turn (int): Its number in the block's store.
        is_last (bool): Whether it ends its episode.
        """
        message = block.store.message(turn, block.fields)
        message["episode_done"] = is_last
        if self.n_candidates and "label_candidates" not in message:
            labels = message.get(self.label_name)
            if labels:
                message["label_candidates"] = self._draw(message["id"], labels)
        if self.prefix:
            message["id"] = f"{self.prefix}{message['id']}"
        return message

    def columns(self, block: Block, episodes: Sequence[int]) -> Columns:
        """Single-turn examples in columns.

        block (Block): Where they stand.
        episodes (Sequence[int]): Their numbers in the block's store.
        """
        rows, store = np.array(episodes, dtype=np.int64), block.store
        columns: Columns = {
            name: PickedColumn(values, rows, store, name) for name, values in block.fields
        }
        columns["episode_done"] = [True] * len(episodes)
        if self.n_candidates and self.label_name in columns:
            given = columns.get("label_candidates", [None] * len(episodes))
            columns["label_candidates"] = [
                known or (self._draw(name, labels) if labels else None)
                for known, name, labels in zip(given, columns["id"], columns[self.label_name])
            ]
        if self.prefix:
            columns["id"] = [f"{self.prefix}{name}" for name in columns["id"]]
        return columns

    def read(self, n_rows: int) -> Rows:
        """The next single-turn examples in columns.

        n_rows (int): Rows wanted; fewer, or none, come at the end of the epoch.
        """
        cursor = self.cursor
        parts: List[Rows] = []
        n_missing = n_rows
        while n_missing > 0 and not cursor.is_exhausted():
            block, episodes = cursor.take(n_missing)
            parts.append(Rows(self.columns(block, episodes), len(episodes)))
            n_missing -= len(episodes)
        return parts[0] if len(parts) == 1 else join_rows(parts)

    def place(self, block: Block, turn: int, end: int) -> Place:
        """Where in its episode a copy is.

        block (Block): The episode's.
        turn (int): Number of its next turn in the block's store.
        end (int): Number of the turn after its last.
        """
        name = str(block.store.columns["id"][turn])
        return {
            "again": block.again,
            "block": block.number,
            "start": block.start,
            "turn": turn,
            "end": end,
            "id": name,
        }

    def restore(self, state: Dict[str, Any], places: Sequence[Place]) -> List[Block]:
        """Go to a place in an epoch.

        state (Dict[str, Any]): From the cursor's ``state``.
        places (Sequence[Place]): Where copies are.
        RETURNS (List[Block]): The blocks of their episodes.
        RAISES (DataError): If the data has no such place.
        """
        keys = [(place["again"], place["block"]) for place in places]
        starts = [place["start"] for place in places]
        found = self.cursor.restore(state, dict(zip(keys, starts)))
        for key, place in zip(keys, places):
            self.check(found[key], place)
        return [found[key] for key in keys]

    def check(self, block: Block, place: Place) -> None:
        """See that a place is still there.

        block (Block): Of the place.
        place (Place): From ``place``.
        RAISES (DataError): If another turn stands there, or its episode ends elsewhere.
        """
        store, turn, end = block.store, place["turn"], place["end"]
        episode = bisect_right(store.starts, turn)
        is_there = turn < store.n_turns and store.starts[episode] == end
        if not is_there or str(store.columns["id"][turn]) != place["id"]:
            raise other_data(self.origin)

    def texts(self) -> Iterator[str]:
        """Every text and label of the whole split; of an endless one, of the first block."""
        return self.data.texts(1 if self.is_endless else None)

    def episodes(self) -> Iterator[List[Message]]:
        """Every episode in the order of the data; of an endless one, those of the first
        block."""
        for block in self._all_blocks():
            starts = block.store.starts
            for episode in block.order:
                start, end = starts[episode], starts[episode + 1]
                yield [self.message(block, turn, turn + 1 == end) for turn in range(start, end)]

    def examples(self) -> Iterator[Message]:
        """The same, flattened."""
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

    def all_labels(self) -> Iterator[str]:
        """Every label of these, without making them."""
        for block in self._all_blocks():
            yield from block.store.all_labels(block.order, block.fields)

    def _all_blocks(self) -> Iterator[Block]:
        parts = self.data.blocks(self.picked())
        for _, store, members, _ in islice(parts, 1 if self.is_endless else None):
            yield Block(store, store.fields(self.label_name), members)

    @property
    def n_episodes(self) -> Optional[int]:
        """Number of episodes; None while unknown for a stream, or endless."""
        if self.is_endless or not self.data.is_counted:
            return None
        picked = self.picked()
        return len(self.data.lengths()) if picked is None else len(picked)

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples; None while unknown for a stream, or endless."""
        if self.is_endless or not self.data.is_counted:
            return None
        lengths, picked = self.data.lengths(), self.picked()
        return sum(lengths) if picked is None else sum(lengths[number] for number in picked)

    def size(self, unit: Unit) -> Optional[int]:
        """All episodes together, in a unit; None for a stream, which would have to be read."""
        if self.data.streaming:
            return None
        bounds, picked = self.data.store().bounds(unit), self.picked()
        if picked is None:
            return bounds[-1]
        return sum(bounds[number + 1] - bounds[number] for number in picked)

    def _draw(self, example_id: str, labels: Sequence[str]) -> List[str]:
        return self._make_sampler().candidates(example_id, labels[0])

    def _make_sampler(self) -> CandidateSampler:
        if self._sampler is None:
            self._sampler = CandidateSampler(self.data.replies(), self.n_candidates, self.seed)
        return self._sampler


def _as_array(members: Members) -> Any:
    if isinstance(members, range):  # 20 times as fast.
        return np.arange(members.start, members.stop)
    return np.array(members, dtype=np.int64)
