"""The stores of several tasks as one, so that rows of a mixture know where they stand."""

from bisect import bisect_right
from itertools import accumulate
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ..columns import PickedColumn
from .rows import Columns
from .showing import Showing


class JoinedStores:
    """What tasks in memory show, one task's rows after the other's.

    parts (Sequence[Showing]): The tasks; all hold single turns, and draw no candidates.
    """

    def __init__(self, parts: Sequence[Showing]):
        stores = [part.data.store() for part in parts]
        starts = list(accumulate((store.n_turns for store in stores), initial=0))
        self._starts = np.array(starts, dtype=np.int64)
        shown = [dict(store.fields(part.label_name)) for store, part in zip(stores, parts)]
        prefixes = [part.prefix for part in parts]
        self._columns: Dict[str, JoinedColumn] = {
            name: JoinedColumn(
                [fields.get(name) for fields in shown], starts, prefixes if name == "id" else None
            )
            for name in dict.fromkeys(name for fields in shown for name in fields)
        }

    def columns(self, tasks: Sequence[int], episodes: Sequence[int]) -> Columns:
        """Single-turn examples in columns (see ``Showing.columns``).

        tasks (Sequence[int]): Number of each one's task.
        episodes (Sequence[int]): Their numbers in its store.
        """
        rows = self._starts[np.array(tasks, dtype=np.int64)] + np.array(episodes, dtype=np.int64)
        columns: Columns = {
            name: PickedColumn(values, rows, self, name) for name, values in self._columns.items()
        }
        columns["episode_done"] = [True] * len(rows)
        return columns


class JoinedColumn(Sequence[Any]):
    """A column of several stores; None where one lacks it. Rows count from 0 up, one at a time.

    columns (Sequence[Optional[Sequence[Any]]]): Of each store.
    starts (List[int]): Where the rows of each begin, and where the last ones end.
    prefixes (Optional[Sequence[str]]): What the cells of each begin with.
    """

    def __init__(
        self,
        columns: Sequence[Optional[Sequence[Any]]],
        starts: List[int],
        prefixes: Optional[Sequence[str]] = None,
    ):
        self._columns, self._starts, self._prefixes = columns, starts, prefixes

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, row: Any) -> Any:
        number = bisect_right(self._starts, row) - 1
        column = self._columns[number]
        if column is None:
            return None
        cell = column[row - self._starts[number]]
        return cell if self._prefixes is None else f"{self._prefixes[number]}{cell}"
