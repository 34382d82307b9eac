"""Several tasks shown as one."""

from itertools import chain
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..columns import pick
from ..messages import Message
from .cursor import Block
from .joined_stores import JoinedStores
from .mixed_cursor import MixedCursor
from .rows import Rows, join_rows
from .showing import Place, Showing
from .split import Start
from .store import Unit


class Mixture:
    """Does for several tasks what ``Showing`` does for one.

    showings (Mapping[str, Showing]): Task name to what is shown of it.
    weights (Optional[Sequence[int]]): See ``MixedCursor``.
    unit (Unit): What the weights count.
    repeat (bool): Whether a task is shown again until all were shown whole.
    """

    def __init__(
        self,
        showings: Mapping[str, Showing],
        weights: Optional[Sequence[int]],
        unit: Unit,
        repeat: bool,
    ):
        self.names = list(showings)
        self.parts = [
            part.as_task(number, name) for number, (name, part) in enumerate(showings.items())
        ]
        self.label_name = self.parts[0].label_name
        self._rules = (weights, unit, repeat)
        self.cursor = MixedCursor(self.parts, weights, unit, repeat)
        self._is_held = not any(part.data.streaming or part.n_candidates for part in self.parts)
        self._stores: Optional[JoinedStores] = None

    def share_of(self, worker: int, n_workers: int) -> "Mixture":
        """The worker's share of every task, mixed alike (see ``Presenter``)."""
        shares = {part.name: part.share_of(worker, n_workers) for part in self.parts}
        mixture = Mixture(shares, *self._rules)
        # What is remembered of a row is so for all workers.
        mixture._stores = self._joined_stores()
        return mixture

    @property
    def is_single_turn(self) -> bool:
        """Whether all episodes of all tasks have one turn."""
        return all(part.is_single_turn for part in self.parts)

    @property
    def is_endless(self) -> bool:
        """Whether no task ever ends."""
        return all(part.is_endless for part in self.parts)

    @property
    def origin(self) -> str:
        """What the data is, for error messages."""
        return ", ".join(dict.fromkeys(part.origin for part in self.parts))

    def message(self, block: Block, turn: int, is_last: bool) -> Message:
        """One turn (see ``Showing.message``)."""
        return self.parts[block.task].message(block, turn, is_last)

    def read(self, n_rows: int) -> Rows:
        """The next single-turn examples in columns (see ``Showing.read``)."""
        cursor = self.cursor
        blocks: List[Block] = []
        episodes: List[int] = []
        while len(blocks) < n_rows and not cursor.is_exhausted():
            block, episode = cursor.take_one()
            blocks.append(block)
            episodes.append(episode)
        tasks = [block.task for block in blocks]
        stores = self._joined_stores()
        if stores is not None:
            return Rows(stores.columns(tasks, episodes), len(tasks), tasks)
        return self._read_by_block(blocks, episodes)._replace(tasks=tasks)

    def _joined_stores(self) -> Optional[JoinedStores]:
        """What is held of all tasks; None if some are streams, or draw candidates."""
        if self._stores is None and self._is_held:
            self._stores = JoinedStores(self.parts)
        return self._stores

    def _read_by_block(self, blocks: Sequence[Block], episodes: Sequence[int]) -> Rows:
        # Of each block, its rows.
        taken: Dict[Tuple[int, int, int], List[int]] = {}
        for row, block in enumerate(blocks):
            taken.setdefault((block.task, block.again, block.number), []).append(row)
        parts = []
        for rows in taken.values():
            block = blocks[rows[0]]
            columns = self.parts[block.task].columns(block, pick(episodes, rows))
            parts.append(Rows(columns, len(rows)))
        place_of = np.argsort(np.fromiter(chain.from_iterable(taken.values()), dtype=np.int64))
        return join_rows(parts).take(place_of.tolist())

    def place(self, block: Block, turn: int, end: int) -> Place:
        """Where in its episode a copy is (see ``Showing.place``)."""
        place = self.parts[block.task].place(block, turn, end)
        return {"task": self.names[block.task], **place}

    def restore(self, state: Dict[str, Any], places: Sequence[Place]) -> List[Block]:
        """Go to a place in an epoch (see ``Showing.restore``)."""
        numbers = {name: number for number, name in enumerate(self.names)}
        keys = [(numbers[place["task"]], place["again"], place["block"]) for place in places]
        wanted: Dict[int, Dict[Tuple[int, int], Optional[Start]]] = {}
        for (task, again, number), place in zip(keys, places):
            wanted.setdefault(task, {})[again, number] = place["start"]
        found = self.cursor.restore(state, wanted)
        for key, place in zip(keys, places):
            self.parts[key[0]].check(found[key], place)
        return [found[key] for key in keys]

    def texts(self) -> Iterator[str]:
        """Every text and label of every task."""
        for part in self.parts:
            yield from part.texts()

    def episodes(self) -> Iterator[List[Message]]:
        """Every episode of every task, one task after the other."""
        for part in self.parts:
            yield from part.episodes()

    def examples(self) -> Iterator[Message]:
        """Every example of every task, one task after the other."""
        for part in self.parts:
            yield from part.examples()

    def all_labels(self) -> Iterator[str]:
        """Every label of every example, in the same order."""
        for part in self.parts:
            yield from part.all_labels()

    @property
    def n_episodes(self) -> Optional[int]:
        """Number of episodes; None if that of a task is unknown."""
        return _sum(part.n_episodes for part in self.parts)

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples; None if that of a task is unknown."""
        return _sum(part.n_examples for part in self.parts)


def _sum(counts: Iterator[Optional[int]]) -> Optional[int]:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
