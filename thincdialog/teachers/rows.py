"""Rows of single-turn data in columns, on their way to a batch."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from ..columns import PickedColumn, pick

Columns = Dict[str, Sequence[Any]]


class Rows(NamedTuple):
    """Examples in columns.

    columns (Columns): Field name to one value a row; None where a row lacks the field.
    n_rows (int): Number of rows.
    tasks (Sequence[int]): Number of each row's task, in a mixture; else ().
    """

    columns: Columns
    n_rows: int
    tasks: Sequence[int] = ()

    def take(self, numbers: Sequence[int]) -> "Rows":
        """Some of the rows, in the given order."""
        places = np.array(numbers, dtype=np.int64)
        # Columns of the same rows keep having the very same ones (see ``derive``).
        taken: Dict[int, np.ndarray] = {}
        columns: Columns = {}
        for name, values in self.columns.items():
            if isinstance(values, PickedColumn):
                rows = values.origin.rows
                if id(rows) not in taken:
                    taken[id(rows)] = rows[places]
                columns[name] = values.take(taken[id(rows)])
            else:
                columns[name] = pick(values, numbers)
        tasks = pick(self.tasks, numbers) if self.tasks else ()
        return Rows(columns, len(numbers), tasks)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other; None where a part lacks a column."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    joined: Dict[Tuple[int, ...], np.ndarray] = {}
    columns = {
        name: _join([part.columns.get(name) or [None] * part.n_rows for part in parts], joined)
        for name in names
    }
    tasks = [task for part in parts for task in part.tasks]
    return Rows(columns, sum(part.n_rows for part in parts), tasks)


def _join(parts: List[Sequence[Any]], joined: Dict[Tuple[int, ...], np.ndarray]) -> Sequence[Any]:
    picked = [part for part in parts if isinstance(part, PickedColumn)]
    if len(picked) == len(parts) and len({id(part.values) for part in picked}) == 1:
        rows = [part.origin.rows for part in picked]
        key = tuple(map(id, rows))
        if key not in joined:
            joined[key] = np.concatenate(rows)
        return picked[0].take(joined[key])
    return [value for part in parts for value in part]
