"""Batches: rows of a store, passed between teacher, world, batcher and agent."""

from functools import cached_property
from typing import Any, Iterable, List, Optional, Sequence, Set, Union

import numpy as np

from ..messages import PARTNER, Columns, Message, Turn
from .joined_store import ChosenRows, JoinedStore
from .store import NO_LABEL, Rows, Store

# Columns of ``max_tokens``, one for each field of an example that an agent encodes.
CONTEXT, LABEL = 0, 1
# Value in ``max_tokens`` for no limit.
NO_LIMIT = np.iinfo(np.int64).max


class Batch(Columns):
    """Hold rows of a store, each an example with all its context. As a sequence, a batch consists
    of messages, which are made on access.

    store (Store): Holds the examples.
    rows (np.ndarray): Numbers of the examples in the store, shape (n,), int64.
    training (bool): Whether messages have `labels` to learn from; otherwise, they have
        `eval_labels`.
    max_tokens (Optional[np.ndarray]): Maximum number of tokens to read of each field of each row,
        shape (n, n_fields), int64 (see ``Agent.batch_lengths``); None for no limit.
    tasks (Optional[np.ndarray]): Number of each row's task, in a mixture; shape (n,).
    is_observed (bool): Whether an agent observed these messages one by one, and added the `turns`
        that it remembered.
    choices (Batch): Rows whose labels each reply is ranked against in training: the rows of the
        batch, followed by rows that the teacher has added. All of them have labels.
    """

    def __init__(
        self,
        store: Store,
        rows: np.ndarray,
        training: bool = True,
        max_tokens: Optional[np.ndarray] = None,
        tasks: Optional[np.ndarray] = None,
    ):
        self.store, self.rows, self.training = store, rows, training
        self.max_tokens, self.tasks = max_tokens, tasks
        self.is_observed = False
        self._choices: Optional[Batch] = None

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "Batch":
        """Make a batch of messages that agents observed one by one; return a batch unchanged.
        The messages' own `labels` and `eval_labels` are used."""
        if isinstance(messages, Batch):
            return messages
        names = dict.fromkeys(name for message in messages for name in message)
        columns = {name: [message.get(name) for message in messages] for name in names}
        limits = columns.pop("max_tokens", ())
        n_fields = max((len(limit) for limit in limits if limit is not None), default=0)
        batch = cls(Rows(columns, len(messages)), np.arange(len(messages)))
        batch.is_observed = True
        if n_fields:
            unlimited = (NO_LIMIT,) * n_fields
            batch.max_tokens = np.array([limit or unlimited for limit in limits], dtype=np.int64)
        return batch

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def choices(self) -> "Batch":
        return self if self._choices is None else self._choices

    @choices.setter
    def choices(self, choices: "Batch") -> None:
        self._choices = choices

    def take(self, places: np.ndarray) -> "Batch":
        """Return a batch of some of the rows, in the given order.

        places (np.ndarray): Places of these rows in this batch, shape (n,), int64.
        """
        limits, tasks = self.max_tokens, self.tasks
        if limits is not None:
            limits = limits[places]
            if (limits == NO_LIMIT).all():
                limits = None
        tasks = None if tasks is None else tasks[places]
        taken = Batch(self.store, self.rows[places], self.training, limits, tasks)
        taken.is_observed = self.is_observed
        return taken

    # --- as messages --------------------------------------------------------------------

    def names(self) -> Iterable[str]:
        names = [self._field_name(name) for name in self.store.names]
        names += ["episode_done"] * ("episode_done" not in names)
        return names if self.max_tokens is None else [*names, "max_tokens"]

    def _field_name(self, name: str) -> str:
        return "eval_labels" if name == "labels" and not self.training else name

    def column(self, name: str) -> List[Any]:
        if name == "max_tokens" and self.max_tokens is not None:
            of_rows = self.max_tokens.tolist()
            return [tuple(row) if row[0] != NO_LIMIT else None for row in of_rows]
        if not self.training and name in ("labels", "eval_labels"):
            name = "labels" if name == "eval_labels" else ""
        if name == "episode_done" and name not in self.store.names:
            return [True] * len(self.rows)
        return self.store.cells(name, self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return super().__getitem__(index)
        message = self.store.message(int(self.rows[index]))
        if not self.training and "labels" in message:
            message = Message((self._field_name(name), value) for name, value in message.items())
        message.setdefault("episode_done", True)
        if self.max_tokens is not None and self.max_tokens[index, 0] != NO_LIMIT:
            message["max_tokens"] = tuple(self.max_tokens[index].tolist())
        return message

    # --- as an agent reads it -----------------------------------------------------------

    def turns(self, history_size: int) -> List[Sequence[Turn]]:
        """Return the turns of each example, its own text last: its `turns`, if an agent that
        observed it has added them; else its `context` and `text`.

        history_size (int): Maximum number of turns to return, including the text; -1 for all.
        """
        texts, names = self.column("text"), self.store.names
        contexts: List[Sequence[Turn]] = [()] * len(texts)
        if history_size != 1 and "context" in names:
            before = slice(1 - history_size if history_size > 0 else None, None)
            contexts = [(context or ())[before] for context in self.column("context")]
        turns: List[Sequence[Turn]] = [
            [*said, (PARTNER, text or "")] for said, text in zip(contexts, texts)
        ]
        if not self.is_observed or "turns" not in names:
            return turns
        return [own if heard is None else heard for own, heard in zip(turns, self.column("turns"))]

    def said(self) -> List[Set[str]]:
        """Return the texts of each example's conversation, including its own text: every turn,
        and every line of a turn with several lines."""
        said: List[Set[str]] = []
        for before, text in zip(self.column("context"), self.column("text")):
            texts = {said_before for _, said_before in before or ()} | {text or ""}
            said.append(texts.union(*(each.split("\n") for each in texts if "\n" in each)))
        return said

    @cached_property
    def label_ids(self) -> np.ndarray:
        """Number in ``store.label_texts`` of each row's first label to learn;
        ``NO_LABEL`` if the row has none. Shape (n,), int64."""
        if not self.training:
            return np.full(len(self.rows), NO_LABEL)
        return self.store.label_ids[self.rows]

    def labelled(self, with_empty: bool = False) -> "Batch":
        """Return the rows that have `labels` to learn from.

        with_empty (bool): Whether to include rows with an empty list of labels.
        """
        places = self.labelled_places(with_empty)
        if len(places) == len(self.rows):
            return self
        labelled = self.take(places)
        labelled._choices = self._choices
        return labelled

    def labelled_places(self, with_empty: bool = False) -> np.ndarray:
        """Return the places in this batch of the rows of ``labelled``, ascending, int64."""
        if with_empty:
            return np.flatnonzero([labels is not None for labels in self.column("labels")])
        return np.flatnonzero(self.label_ids != NO_LABEL)

    def first_labels(self) -> List[str]:
        """Return the first label to learn of each row; every row must have one."""
        texts = self.store.label_texts
        return [texts[number] for number in self.label_ids.tolist()]

    def ids(self) -> List[Union[str, None]]:
        """Return the id of each example."""
        return self.column("id")


def gathered(parts: Sequence[Batch], places: Optional[np.ndarray] = None) -> Batch:
    """Join the rows of several batches: in their store if they share one, otherwise in a store
    that shows these rows of all their stores.

    parts (Sequence[Batch]): Batches with the same value of ``training``, without ``max_tokens``.
    places (Optional[np.ndarray]): Order of the joined rows; None to keep one part after the other.
    """
    if len(parts) == 1 and places is None:
        return parts[0]
    parts = parts or [Batch(Rows({}, 0), np.zeros(0, dtype=np.int64))]
    store, rows = parts[0].store, np.concatenate([part.rows for part in parts])
    if any(part.store is not store for part in parts):
        store = JoinedStore([ChosenRows(part.store, part.rows) for part in parts])
        rows = np.arange(len(rows))
    tasks = [part.tasks for part in parts if part.tasks is not None]
    whole = Batch(
        store,
        rows,
        all(part.training for part in parts),
        tasks=np.concatenate(tasks) if tasks else None,
    )
    return whole if places is None else whole.take(places)
