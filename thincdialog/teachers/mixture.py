"""Several tasks shown as one."""

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..messages import Message
from .cursor import Block
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

    def share_of(self, worker: int, n_workers: int) -> "Mixture":
        """The worker's share of every task, mixed alike (see ``Presenter``)."""
        shares = {part.name: part.share_of(worker, n_workers) for part in self.parts}
        return Mixture(shares, *self._rules)

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
        tasks: List[int] = []
        # Of each block, its episodes and their rows.
        taken: Dict[Tuple[int, int, int], Tuple[Block, List[int], List[int]]] = {}
        while len(tasks) < n_rows and not cursor.is_exhausted():
            block, episode = cursor.take_one()
            key = (block.task, block.again, block.number)
            if key not in taken:
                taken[key] = (block, [], [])
            _, episodes, rows = taken[key]
            episodes.append(episode)
            rows.append(len(tasks))
            tasks.append(block.task)
        by_block = join_rows(
            [
                Rows(self.parts[block.task].columns(block, episodes), len(episodes))
                for block, episodes, _ in taken.values()
            ]
        )
        place_of = [0] * len(tasks)
        places = (row for _, _, rows in taken.values() for row in rows)
        for place, row in enumerate(places):
            place_of[row] = place
        return by_block.take(place_of)._replace(tasks=tasks)

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
