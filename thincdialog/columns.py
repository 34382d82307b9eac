"""Columns of a batch that know where in the data their cells stand.

A batch is a choice of rows of data that stays as it is, so what an agent makes of a row (its
tokens, its class) is the same each time the row is shown. A column that tells its rows lets
the agent remember that by number, and a batch takes a few array operations instead of a look
at every string.
"""

from operator import itemgetter
from typing import (
    Any,
    Callable,
    Dict,
    Hashable,
    List,
    MutableMapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
    overload,
)
from weakref import WeakKeyDictionary

import numpy as np

UNKNOWN = -1


class Origin(NamedTuple):
    """Where the cells of a column come from.

    owner (object): Of the data; something that can be referred to weakly.
    key (Hashable): Which column of the owner's it is, or how it was made of such.
    rows (np.ndarray): Of each cell its row in that column, int64.
    n_rows (int): How many the column has.
    """

    owner: Any
    key: Hashable
    rows: np.ndarray
    n_rows: int


class LazyColumn(Sequence[Any]):
    """Cells that are made when one of them is asked for, all of them at once.

    make (Callable[[], List[Any]]): Makes them.
    origin (Origin): Where they come from.
    """

    __slots__ = ("origin", "_make", "_cells")

    def __init__(self, make: Callable[[], List[Any]], origin: Origin):
        self.origin = origin
        self._make = make
        self._cells: Optional[List[Any]] = None

    def __len__(self) -> int:
        return len(self.origin.rows)

    def cells(self) -> List[Any]:
        """All of them; to be read only."""
        if self._cells is None:
            self._cells = self._make()
        return self._cells

    def new_cells(self) -> List[Any]:
        """The same, but nobody else will get these."""
        return self._make()

    @property
    def may_differ(self) -> bool:
        """Whether somebody who got the cells may have changed one, a list, in place."""
        return self._cells is not None

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> List[Any]: ...

    def __getitem__(self, index: Union[int, slice]) -> Any:
        return self.cells()[index]

    def __iter__(self) -> Any:
        return iter(self.cells())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.cells() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.cells())


class PickedColumn(LazyColumn):
    """Some cells of a column of the data.

    values (Sequence[Any]): That column, which never changes.
    rows (np.ndarray): Whose cells these are, int64.
    owner (object): Of the data.
    name (str): Of the column.
    """

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any], rows: np.ndarray, owner: Any, name: str):
        super().__init__(self._pick, Origin(owner, name, rows, len(values)))
        self.values = values

    def _pick(self) -> List[Any]:
        return pick(self.values, self.origin.rows.tolist())

    @property
    def may_differ(self) -> bool:
        """Never: what stands in the data stays as it is."""
        return False

    def take(self, rows: np.ndarray) -> "PickedColumn":
        """Other rows of the same column of the data."""
        owner, key, _, _ = self.origin
        return PickedColumn(self.values, rows, owner, str(key))


def pick(values: Sequence[Any], numbers: Sequence[int]) -> List[Any]:
    """Some of the values, in the order of the numbers."""
    if len(numbers) < 2:
        return [values[number] for number in numbers]
    # Half the time of a loop.
    return list(itemgetter(*numbers)(values))


def choose(column: Sequence[Any], places: np.ndarray) -> Sequence[Any]:
    """Some cells of a column; they know their rows if they are of the data."""
    if isinstance(column, PickedColumn):
        return column.take(column.origin.rows[places])
    return pick(column, places.tolist())


def derive(key: Hashable, make: Callable[..., List[Any]], *columns: Sequence[Any]) -> Sequence[Any]:
    """A column made of others, row by row.

    key (Hashable): Says what ``make`` does.
    make (Callable[..., List[Any]]): Gives the cells for the columns' cells.
    RETURNS (Sequence[Any]): Cells; a LazyColumn where all columns show the same rows, and
        are sure to be what they were.
    """
    origins = [
        column.origin
        for column in columns
        if isinstance(column, LazyColumn) and not column.may_differ
    ]
    if len(origins) < len(columns) or any(
        origin.owner is not origins[0].owner or origin.rows is not origins[0].rows
        for origin in origins
    ):
        return make(*columns)
    keys = (key, *(origin.key for origin in origins))
    return LazyColumn(lambda: make(*columns), origins[0]._replace(key=keys))


class RowNumbers:
    """A number for each row of columns, computed once; forgotten with the data."""

    def __init__(self) -> None:
        self._known: MutableMapping[Any, Dict[Hashable, np.ndarray]] = WeakKeyDictionary()

    def of(self, column: Sequence[Any], compute: Callable[[Sequence[Any]], Any]) -> np.ndarray:
        """The numbers of a column's cells.

        compute (Callable[[Sequence[Any]], Any]): Gives them for some cells, each 0 or
            more; always the same number for the same cell.
        RETURNS (np.ndarray): Shape (n_cells,), int64.
        """
        if not isinstance(column, LazyColumn) or column.may_differ:
            return np.array(compute(column), dtype=np.int64)
        owner, key, rows, n_rows = column.origin
        known = self._known.setdefault(owner, {})
        if key not in known:
            known[key] = np.full(n_rows, UNKNOWN, dtype=np.int64)
        numbers: np.ndarray = known[key][rows]
        new = np.flatnonzero(numbers == UNKNOWN)
        if len(new):
            cells = column.new_cells()
            if len(new) < len(rows):
                cells = pick(cells, new.tolist())
            known[key][rows[new]] = numbers[new] = compute(cells)
        return numbers
