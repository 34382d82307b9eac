"""The order of the examples of several tasks that are shown together."""

import copy
from functools import cached_property
from itertools import chain
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

from ..errors import DataError
from ..messages import Message
from .batch import Batch, gathered
from .blocks import Block
from .joined_store import JoinedStore
from .order import NOTHING, Order, Place, flattened, most_frequent
from .shares import Shares
from .store import Unit


class Mixture:
    """Order the episodes of several tasks: the next task is chosen for each episode. A teacher
    uses it like an ``Order``, which has the same methods.

    orders (Mapping[str, Order]): Task name to the order of the task.
    weights (Optional[Sequence[int]]): Weights of the tasks; None for their sizes, or for equal
        weights if a size is not known.
    unit (Unit): Unit that the weights count.
    repeat (bool): Whether to repeat a task until all tasks were shown completely.
    """

    def __init__(
        self,
        orders: Mapping[str, Order],
        weights: Optional[Sequence[int]],
        unit: Unit,
        repeat: bool,
    ):
        self.names = list(orders)
        named = enumerate(orders.items())
        self.parts = [part.as_task(number, f"{name}/") for number, (name, part) in named]
        self._weights, self._unit, self._repeat = weights, unit, repeat
        self.training = self.parts[0].training
        self.origin = ", ".join(dict.fromkeys(part.origin for part in self.parts))
        self.is_endless = all(part.is_endless for part in self.parts)
        # Whether any episode was taken. Only then do endless tasks continue in the next epoch.
        self._has_begun = False
        self.epoch = self.seed = 0
        self.start(0, self.parts[0].seed)

    def share_of(self, worker: int, n_workers: int, reads_apart: bool = False) -> "Mixture":
        return self._with([part.share_of(worker, n_workers, reads_apart) for part in self.parts])

    def shares(self, n_workers: int) -> "List[Mixture]":
        shares_of_parts = [part.shares(n_workers) for part in self.parts]
        return [self._with(list(parts)) for parts in zip(*shares_of_parts)]

    def _with(self, parts: List[Order]) -> "Mixture":
        """Return a share of these parts, with its own position."""
        # Join the stores now, so that all workers share one store and the data that agents cache
        # about its rows.
        self._joined  # noqa: B018
        share = copy.copy(self)
        share.parts, share._has_begun = parts, False
        share.start(0, self.parts[0].seed)
        return share

    # --- the data -----------------------------------------------------------------------

    @property
    def is_single_turn(self) -> bool:
        return all(part.is_single_turn for part in self.parts)

    @property
    def n_episodes(self) -> Optional[int]:
        return _sum(part.n_episodes for part in self.parts)

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples of an epoch; accurate to one episode per task if tasks are repeated.
        None if it is not known."""
        counts = [part.n_examples for part in self.parts]
        if None in counts or not self._repeat:
            return _sum(counts)
        sizes = [part.size(self._unit) for part in self.parts]
        if None in sizes:
            return None
        lengths = np.array(sizes, dtype=float) / (self._weights or sizes)
        return round((np.array(counts, dtype=float) * lengths.max() / lengths).sum())

    @cached_property
    def _joined(self) -> Optional[JoinedStore]:
        """The data of all tasks as one store; None if some tasks are streamed."""
        if any(part.data.streaming for part in self.parts):
            return None
        return JoinedStore([part.held for part in self.parts])

    def texts(self) -> Iterator[str]:
        return chain.from_iterable(part.texts() for part in self.parts)

    def episodes(self) -> Iterator[List[Message]]:
        return chain.from_iterable(part.episodes() for part in self.parts)

    def examples(self) -> Iterator[Message]:
        return flattened(self.episodes())

    def all_labels(self) -> Iterator[str]:
        return chain.from_iterable(part.all_labels() for part in self.parts)

    def frequent_labels(self, most: int) -> List[str]:
        return most_frequent(self.all_labels(), most)

    # --- the epoch ----------------------------------------------------------------------

    def start(self, epoch: int, seed: int) -> None:
        """Begin an epoch. If it is a later epoch with the same seed, endless tasks continue at
        their positions."""
        continues = self._has_begun and seed == self.seed and epoch > self.epoch
        self.run = object()
        self.epoch, self.seed = epoch, seed
        for part in self.parts:
            if not (continues and part.is_endless):
                part.start(epoch, seed)
        self._shares: Optional[Shares] = None
        self._expect_all(list(range(len(self.parts))))
        # The tasks that were not shown completely yet; the epoch ends when there are none left.
        self._open = {task for task in self._unseen if not self.parts[task].is_endless}
        self._ends = bool(self._open)

    def _expect_all(self, tasks: List[int]) -> None:
        """Look up the next episode of each of these tasks before the next one is taken."""
        self._unseen = tasks
        self._heads: List[Tuple[Block, int]] = [(NOTHING, 0)] * len(self.parts)
        self._sizes = [1] * len(self.parts)

    def is_exhausted(self) -> bool:
        if self._shares is None:
            self._shares = Shares(self._weights or self._task_sizes())
        for task in self._unseen:
            self._find_next(task, self._shares)
        self._unseen = []
        # A worker's share may be empty, even for endless tasks.
        return (self._ends and not self._open) or not self._shares.active

    def _task_sizes(self) -> List[int]:
        sizes = [part.size(self._unit) for part in self.parts]
        return [size or 1 for size in sizes] if None not in sizes else [1] * len(sizes)

    def _find_next(self, task: int, shares: Shares) -> None:
        """Look up the next episode of a task, if it has one."""
        part = self.parts[task]
        if part.is_exhausted():
            self._open.discard(task)
            if self._repeat and self._open:
                part.start_again()
            # A worker's share of a small task may be empty.
            if part.is_exhausted():
                shares.leave(task)
                return
        block, episode = self._heads[task] = part.head()
        bounds = block.store.sizes(self._unit)
        self._sizes[task] = int(bounds[episode + 1] - bounds[episode])

    def take_one(self) -> Tuple[Block, int]:
        assert self._shares is not None
        task = self._shares.next(self._sizes)
        self._unseen = [task]
        self._has_begun = True
        self.parts[task].take_one()
        return self._heads[task]

    def read(self, n_rows: int) -> Batch:
        heads: List[Tuple[Block, int]] = []
        while len(heads) < n_rows and not self.is_exhausted():
            heads.append(self.take_one())
        tasks = np.array([block.task for block, _ in heads], dtype=np.int64)
        rows = np.array([episode for _, episode in heads], dtype=np.int64)
        if self._joined is not None:
            rows += np.array(self._joined.first_rows)[tasks]
            return Batch(self._joined, rows, self.training, tasks=tasks)
        taken: Dict[int, List[int]] = {}  # For each block, by its id(), the places of its rows.
        for place, (block, _) in enumerate(heads):
            taken.setdefault(id(block), []).append(place)
        parts = [
            Batch(heads[places[0]][0].store, rows[places], self.training, tasks=tasks[places])
            for places in taken.values()
        ]
        handed_out = np.concatenate([*taken.values(), []]).astype(np.int64)
        return gathered(parts, np.argsort(handed_out))

    # --- resuming from a state ------------------------------------------------------------

    def place(self, block: Block, row: int, end: int) -> Place:
        place = self.parts[block.task].place(block, row, end)
        return {"task": self.names[block.task], **place}

    def state(self) -> Dict[str, Any]:
        return {
            "epoch": self.epoch,
            "seed": self.seed,
            "has_begun": self._has_begun,
            "tasks": [[name, part.state()] for name, part in zip(self.names, self.parts)],
            "open": sorted(self._open),
            "shares": None if self._shares is None else self._shares.state(),
        }

    def restore(self, state: Mapping[str, Any], places: Sequence[Place]) -> List[Block]:
        # Shares and open tasks are saved by task number.
        saved = [name for name, _ in state["tasks"]]
        if saved != self.names:
            text = f"the saved state belongs to other tasks: {', '.join(saved)}, in this order"
            raise DataError(", ".join(self.names), text)
        self.start(state["epoch"], state["seed"])
        self._has_begun = state["has_begun"]
        blocks = [NOTHING] * len(places)
        for (name, own), part in zip(state["tasks"], self.parts):
            ours = [at for at, place in enumerate(places) if place["task"] == name]
            for at, block in zip(ours, part.restore(own, [places[at] for at in ours])):
                blocks[at] = block
        self._open = set(state["open"])
        if state["shares"] is not None:
            self._shares = Shares(state["shares"]["weights"])
            self._shares.restore(state["shares"])
            self._expect_all(self._shares.active[:])
        return blocks


# The order of a teacher's examples: of one task, or of several.
AnyOrder = Union[Order, Mixture]


def _sum(counts: Iterable[Optional[int]]) -> Optional[int]:
    known = list(counts)
    return None if None in known else sum(known)  # type: ignore[arg-type]
