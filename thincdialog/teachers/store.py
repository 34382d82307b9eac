"""Episodes held as columns: one list for each field, not one dict for each message."""

from array import array
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ..messages import Message

# Distinct lists of labels that are looked out for again.
MAX_KNOWN_LISTS = 4096

# A field as a message shows it: its name, and its value for every turn of the store.
Field = Tuple[str, List[Any]]


class EpisodeStore:
    """Grows by episodes; hands out turns by their number.

    columns (Dict[str, List]): Field name to one value for each turn; None where a
        turn lacks the field. Labels stand under `labels`.
    starts (array): Number of each episode's first turn, and of all turns at the end.
    is_sparse (bool): Whether some turn lacks a field that another has.
    """

    def __init__(self) -> None:
        self.columns: Dict[str, List[Any]] = {}
        self.starts = array("q", [0])
        self.is_sparse = False
        # Equal lists of labels (classes, say) are held once.
        self._known_lists: Dict[Tuple[str, ...], List[str]] = {}

    @property
    def n_episodes(self) -> int:
        """Number of episodes."""
        return len(self.starts) - 1

    @property
    def n_turns(self) -> int:
        """Number of turns, that is, of examples."""
        return self.starts[-1]

    def append(self, episode: Sequence[Message]) -> None:
        """Take in one episode; its messages are not kept."""
        columns = self.columns
        n_turns = self.starts[-1]
        for message in episode:
            for name, value in message.items():
                if name == "labels":
                    value = self._shared(value)
                column = columns.get(name)
                if column is None:
                    column = columns[name] = [None] * n_turns
                    self.is_sparse |= n_turns > 0
                column.append(value)
            n_turns += 1
            if len(message) < len(columns):
                self.is_sparse = True
                for column in columns.values():
                    if len(column) < n_turns:
                        column.append(None)
        self.starts.append(n_turns)

    def _shared(self, values: List[str]) -> List[str]:
        known = self._known_lists
        key = tuple(values)
        if len(known) < MAX_KNOWN_LISTS:
            return known.setdefault(key, values)
        return known.get(key, values)

    def fields(self, label_name: str) -> List[Field]:
        """The columns as messages show them.

        label_name (str): `labels` or `eval_labels`.
        """
        return [
            (label_name if name == "labels" else name, column)
            for name, column in self.columns.items()
        ]

    def message(self, turn: int, fields: Sequence[Field]) -> Message:
        """One turn as a message.

        turn (int): Its number in the store.
        fields (Sequence[Field]): What to show of it, from ``fields``.
        """
        if self.is_sparse:
            cells = ((name, values[turn]) for name, values in fields)
            return Message((name, value) for name, value in cells if value is not None)
        return Message([(name, values[turn]) for name, values in fields])

    def replies(self) -> Iterator[str]:
        """The first label of every turn that has one."""
        return (labels[0] for labels in self.columns.get("labels", ()) if labels)
