"""The plane of workers on several machines, which send each other messages through Ray."""

import threading
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple, Union

import numpy

from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Rows, Segment
from .gradient import Gradient
from .lone_plane import Aborted, LonePlane
from .owned import Piece, pieces_of
from .slots import Slots

Key = Tuple[Any, ...]


class Mailbox:
    """Hold messages that other workers have sent to this worker."""

    def __init__(self) -> None:
        self._has_come = threading.Condition()
        self._messages: Dict[Key, Any] = {}
        self.is_abandoned = False

    def put(self, key: Key, message: Any) -> None:
        """Add a message, under a key by which ``take`` finds it."""
        with self._has_come:
            self._messages[key] = message
            self._has_come.notify_all()

    def take(self, key: Key) -> Any:
        """Wait for the message with this key, remove it from the mailbox, and return it.

        RAISES (Aborted): If the mailbox was abandoned.
        """
        with self._has_come:
            self._has_come.wait_for(lambda: key in self._messages or self.is_abandoned)
            if key not in self._messages:
                raise Aborted
            return self._messages.pop(key)

    def abandon(self) -> None:
        """Make ``take`` raise ``Aborted`` instead of waiting."""
        with self._has_come:
            self.is_abandoned = True
            self._has_come.notify_all()


class StorePlane(LonePlane):
    """Exchange gradients and parameters through messages that workers put into each other's
    mailboxes. Each worker sends every other worker the pieces of its gradients that the other
    worker owns, and receives the changed parameters.

    values, stretches, slots, worker: See ``LonePlane``.
    send (Callable[[int, Key, Any], None]): Function that puts a message into another worker's
        mailbox. Arrays in the message may be changed afterwards.
    mailbox (Mailbox): This worker's mailbox.
    """

    def __init__(
        self,
        values: Any,
        stretches: Sequence[Segment],
        slots: Slots,
        worker: int,
        send: Callable[[int, Key, Any], None],
        mailbox: Mailbox,
    ):
        super().__init__(values, stretches, slots, worker)
        workers = range(slots.n_workers)
        self._others = [other for other in workers if other != worker]
        self._pieces = [pieces_of(stretches, each, slots.n_workers) for each in workers]
        # For each slot of another worker, a vector for its gradient, in which only the pieces that
        # this worker owns are used.
        self._received: Dict[int, Any] = {
            slot: aligned_zeros(len(values))
            for slot in range(slots.n_slots)
            if slot not in self.vectors
        }
        self._send, self._mailbox, self._round = send, mailbox, 0
        self._n_tables = sum(bool(part.width) for part in stretches)

    def _exchange(self, message: Callable[[int], Any]) -> Dict[int, Any]:
        """Send a message to each other worker, and return the other workers' messages.

        message (Callable[[int], Any]): Function that makes the message for a worker.
        """
        self._round += 1
        for other in self._others:
            self._send(other, (self._round, self.worker), message(other))
        return {other: self._mailbox.take((self._round, other)) for other in self._others}

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        gradients = {slot: Gradient(self.vectors[slot], tables[slot]) for slot in tables}

        def message(other: int) -> Any:
            return weight, {slot: self._cut(other, gradients[slot]) for slot in tables}

        messages = self._exchange(message)
        self._clear_sent(tables)
        total = weight
        for n_theirs, theirs in messages.values():
            total += n_theirs
            for slot, parts in theirs.items():
                gradients[slot] = self._placed(slot, parts)
        return total, [gradients[slot] for slot in range(n_slots)]

    def _cut(self, other: int, gradient: Gradient) -> List[Union[Any, Rows]]:
        """Return the pieces of a gradient that another worker owns: views of the vector for dense
        pieces, and rows for tables.

        other (int): Number of the other worker.
        gradient (Gradient): A gradient of this worker.
        """
        parts: List[Union[Any, Rows]] = []
        for piece in self._pieces[other]:
            if piece.width:
                rows, values = gradient.tables[piece.table]
                own = piece.rows_among(rows)
                parts.append((rows[own], values[own]))
            else:
                parts.append(gradient.vector[piece.start : piece.stop])
        return parts

    def _clear_sent(self, slots: Iterable[int]) -> None:
        """Set the dense pieces that other workers own to zero, in the vectors of these slots."""
        for slot in slots:
            for other in self._others:
                for piece in self._pieces[other]:
                    if not piece.width:
                        self.vectors[slot][piece.start : piece.stop].fill(0)

    def _placed(self, slot: int, parts: Sequence[Any]) -> Gradient:
        """Return a gradient with the pieces that another worker has sent."""
        vector = self._received[slot]
        tables: List[Rows] = [(numpy.zeros(0, "q"), numpy.zeros((0, 1), "f"))] * self._n_tables
        for piece, part in zip(self._pieces[self.worker], parts):
            if piece.width:
                # Copy arrays from Ray, because kernels would be compiled again for read-only
                # arrays.
                tables[piece.table] = (part[0].copy(), part[1].copy())
            else:
                vector[piece.start : piece.stop] = part
        return Gradient(vector, tables)

    def all_sums(self) -> Any:
        # Each worker has the sums of its own blocks, and zeros for all other blocks.
        total = self.sums.copy()
        for theirs in self._exchange(lambda other: self.sums).values():
            total += theirs
        return total

    def stepped(self, pieces: Sequence[Piece], rows: Mapping[int, Any]) -> None:
        changed: List[Any] = []
        for piece in pieces:
            view = self.values[piece.start : piece.stop]
            if piece.width and piece.table in rows:
                own = rows[piece.table]
                changed.append((own, view.reshape(-1, piece.width)[own]))
            else:
                changed.append((None, view))
        for other, theirs in self._exchange(lambda other: changed).items():
            for piece, (own, values) in zip(self._pieces[other], theirs):
                view = self.values[piece.start : piece.stop]
                if own is None:
                    view[:] = values
                else:
                    view.reshape(-1, piece.width)[own] = values
