"""The plane of workers on several machines, which send each other messages through Ray."""

import threading
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy

from ...ops.alignment import aligned_zeros
from ...optimizers.row_sparse import Rows, Segment
from .gradient import Gradient
from .lone_plane import Aborted
from .owned import Piece
from .sending_plane import SendingPlane
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


class StorePlane(SendingPlane):
    """Exchange gradients and parameters through messages that workers put into each other's
    mailboxes.

    values (Floats1d): Current values of all parameters, which are copied.
    stretches, slots, worker: See ``LonePlane``.
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
        own = aligned_zeros(len(values))
        own[:] = values
        super().__init__(own, stretches, slots, worker)
        self._send, self._mailbox, self._round = send, mailbox, 0
        self._n_tables = sum(bool(part.width) for part in stretches)

    def _exchange(self, message: Callable[[int], Any]) -> Dict[int, Any]:
        """Send a message to each other worker, and return the other workers' messages.

        message (Callable[[int], Any]): Function that makes the message for a worker.
        """
        self._round += 1
        for other in self.others:
            self._send(other, (self._round, self.worker), message(other))
        return {other: self._mailbox.take((self._round, other)) for other in self.others}

    def hand_over(
        self, tables: Mapping[int, List[Rows]], weight: int, n_slots: int
    ) -> Tuple[int, List[Gradient]]:
        gradients = {slot: Gradient(self.vectors[slot], tables[slot]) for slot in tables}

        def message(other: int) -> Any:
            return weight, {slot: self.cut(other, gradients[slot]) for slot in tables}

        messages = self._exchange(message)
        self.clear_sent(tables)
        total = weight
        for n_theirs, theirs in messages.values():
            total += n_theirs
            for slot, parts in theirs.items():
                gradients[slot] = self._placed(slot, parts)
        return total, [gradients[slot] for slot in range(n_slots)]

    def _placed(self, slot: int, parts: Sequence[Any]) -> Gradient:
        """Return a gradient with the pieces that another worker has sent."""
        vector = self.received[slot]
        tables: List[Rows] = [(numpy.zeros(0, "q"), numpy.zeros((0, 1), "f"))] * self._n_tables
        for piece, part in zip(self.pieces[self.worker], parts):
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
            for piece, (own, values) in zip(self.pieces[other], theirs):
                view = self.values[piece.start : piece.stop]
                if own is None:
                    view[:] = values
                else:
                    view.reshape(-1, piece.width)[own] = values
