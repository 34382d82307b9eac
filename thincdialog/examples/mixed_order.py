"""The order of several tasks that are shown together."""

from functools import cached_property
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..errors import DataError
from ..messages import Message
from .batch import Batch, gathered
from .joined_store import JoinedStore
from .order import Block, EpochOrder, Order, Place
from .shares import Shares
from .split import Start
from .store import Unit


class MixedOrder(EpochOrder):
    """One order over (task, episode): which task is next is chosen for each episode.

    orders (Mapping[str, Order]): Task name to its own order.
    weights (Optional[Sequence[int]]): Of the tasks; None for their sizes, or for equal
        ones if a size is not known.
    unit (Unit): What the weights count.
    repeat (bool): Whether a task is shown again until all were shown whole.
    """

    def __init__(
        self,
        orders: Mapping[str, Order],
        weights: Optional[Sequence[int]],
        unit: Unit,
        repeat: bool,
    ):
        self.names = list(orders)
        self.parts = [part.as_task(number) for number, part in enumerate(orders.values())]
        self._weights, self._unit, self._repeat = weights, unit, repeat
        self.training = self.parts[0].training
        self.origin = ", ".join(dict.fromkeys(part.origin for part in self.parts))
        self.is_endless = all(part.is_endless for part in self.parts)
        # Whether anything was taken: an endless task goes on from epoch to epoch.
        self._has_begun = False
        self.epoch = self.seed = 0
        self.start(0, self.parts[0].seed)

    def share_of(self, worker: int, n_workers: int) -> "MixedOrder":
        shares = {
            name: part.share_of(worker, n_workers) for name, part in zip(self.names, self.parts)
        }
        mixture = MixedOrder(shares, self._weights, self._unit, self._repeat)
        # What agents remember of a row is so for all workers.
        mixture.__dict__["_joined"] = self._joined
        return mixture

    # --- what is shown ------------------------------------------------------------------

    @property
    def is_single_turn(self) -> bool:  # type: ignore[override]
        return all(part.is_single_turn for part in self.parts)

    @property
    def n_episodes(self) -> Optional[int]:  # type: ignore[override]
        return _sum(part.n_episodes for part in self.parts)

    @property
    def n_examples(self) -> Optional[int]:  # type: ignore[override]
        return _sum(part.n_examples for part in self.parts)

    def _prefix(self, task: int) -> str:
        return f"{self.names[task]}/"

    @cached_property
    def _joined(self) -> Optional[JoinedStore]:
        """What is held of all tasks; None if some are streams."""
        if any(part.data.streaming for part in self.parts):
            return None
        stores = [part.shown(part.data.store()) for part in self.parts]
        return JoinedStore(stores, list(map(self._prefix, range(len(stores)))))

    def message(self, block: Block, row: int) -> Message:
        message = block.store.message(row)
        message["id"] = f"{self._prefix(block.task)}{message['id']}"
        return message

    def texts(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.texts()

    def episodes(self) -> Iterator[List[Message]]:
        for task, part in enumerate(self.parts):
            for episode in part.episodes():
                for message in episode:
                    message["id"] = f"{self._prefix(task)}{message['id']}"
                yield episode

    def all_labels(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.all_labels()

    # --- the epoch ----------------------------------------------------------------------

    def start(self, epoch: int, seed: int) -> None:
        """Begin an epoch. Endless tasks go on where they are, if it is a later epoch of
        the same seed."""
        goes_on = self._has_begun and seed == self.seed and epoch > self.epoch
        self.run = object()
        self.epoch, self.seed = epoch, seed
        for part in self.parts:
            if not (goes_on and part.is_endless):
                part.start(epoch, seed)
        self._shares: Optional[Shares] = None
        self._look_at_all([number for number, _ in enumerate(self.parts)])
        # The tasks that keep the epoch from ending.
        self._open = {task for task in self._unseen if not self.parts[task].is_endless}
        self._ends = bool(self._open)

    def _look_at_all(self, tasks: List[int]) -> None:
        self._unseen = tasks
        self._heads: List[Tuple[Optional[Block], int]] = [(None, 0)] * len(self.parts)
        self._sizes = [1] * len(self.parts)

    def is_exhausted(self) -> bool:
        if self._shares is None:
            self._shares = Shares(self._weights or self._task_sizes())
        for task in self._unseen:
            self._look(task, self._shares)
        self._unseen = []
        # Even of endless tasks a worker's share may be empty.
        return (self._ends and not self._open) or not self._shares.active

    def _task_sizes(self) -> List[int]:
        sizes = [part.size(self._unit) for part in self.parts]
        return [size or 1 for size in sizes] if None not in sizes else [1] * len(sizes)

    def _look(self, task: int, shares: Shares) -> None:
        """What a task has next, if anything."""
        part = self.parts[task]
        if part.is_exhausted():
            self._open.discard(task)
            if self._repeat and self._open:
                part.start_again()
            # With nothing in it even then, if it is a worker's share of a small task.
            if part.is_exhausted():
                shares.leave(task)
                return
        block, episode = self._heads[task] = part.head()
        bounds = block.store.sizes(self._unit)
        self._sizes[task] = bounds[episode + 1] - bounds[episode]

    def take_one(self) -> Tuple[Block, int]:
        assert self._shares is not None
        task = self._shares.next(self._sizes)
        self._unseen = [task]
        self._has_begun = True
        self.parts[task].take_one()
        block, episode = self._heads[task]
        assert block is not None
        return block, episode

    def read(self, n_rows: int) -> Batch:
        blocks: List[Block] = []
        episodes: List[int] = []
        while len(blocks) < n_rows and not self.is_exhausted():
            block, episode = self.take_one()
            blocks.append(block)
            episodes.append(episode)
        tasks = np.array([block.task for block in blocks], dtype=np.int64)
        rows = np.array(episodes, dtype=np.int64)
        if self._joined is not None:
            rows += self._joined.first_rows[tasks]
            return Batch(self._joined, rows, self.training, tasks=tasks)
        # Of each block, its rows.
        taken: Dict[int, List[int]] = {}
        for place, block in enumerate(blocks):
            taken.setdefault(id(block), []).append(place)
        parts = []
        for places in taken.values():
            block = blocks[places[0]]
            store = JoinedStore([block.store], [self._prefix(block.task)])
            parts.append(Batch(store, rows[places], self.training, tasks=tasks[places]))
        handed_out = np.concatenate([*taken.values(), []]).astype(np.int64)
        return gathered(parts, np.argsort(handed_out))

    # --- going on from a state ------------------------------------------------------------

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
        # Shares and what is open are kept by number.
        saved = [name for name, _ in state["tasks"]]
        if saved != self.names:
            text = f"the saved state is of other tasks: {', '.join(saved)}, in this order"
            raise DataError(", ".join(self.names), text)
        tasks = [self.names.index(place["task"]) for place in places]
        self.start(state["epoch"], state["seed"])
        self._has_begun = state["has_begun"]
        found: Dict[Tuple[int, int, int], Block] = {}
        for task, (part, (_, own)) in enumerate(zip(self.parts, state["tasks"])):
            wanted: Dict[Tuple[int, int], Optional[Start]] = {
                (place["again"], place["block"]): place["start"]
                for of, place in zip(tasks, places)
                if of == task
            }
            for (again, number), block in part.go_to(own, wanted).items():
                found[task, again, number] = block
        self._open = set(state["open"])
        if state["shares"] is not None:
            self._shares = Shares(state["shares"]["weights"])
            self._shares.restore(state["shares"])
            self._look_at_all(self._shares.active[:])
        blocks = [found[task, place["again"], place["block"]] for task, place in zip(tasks, places)]
        for task, block, place in zip(tasks, blocks, places):
            self.parts[task].check(block, place)
        return blocks


def _sum(counts: Iterable[Optional[int]]) -> Optional[int]:
    known = list(counts)
    return None if None in known else sum(known)  # type: ignore[arg-type]
