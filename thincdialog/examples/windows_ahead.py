"""Whole batches, of which a thread takes and prepares the next one while one is learnt."""

import contextvars
import threading
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Tuple, Union

from .batch import Batch
from .order import Order
from .windows import Windows

# Called with a batch before it is learnt, it gives what a thread is to do with the next one.
Prepare = Callable[[Batch], Callable[[Batch], None]]
# How long a thread that reads is waited for where nobody wants what it reads.
END_SECONDS = 2.0


class WindowsAhead:
    """The same batches as of ``Windows``, each taken as the one before it is handed out. Who asks
    for a state gets that before a batch that is taken and not handed out.

    windows (Windows): Gives the batches.
    prepare (Prepare): What to do with each that is handed out, and with the one behind it.
    """

    def __init__(self, windows: Windows, prepare: Prepare):
        self.windows, self._prepare = windows, prepare
        self._ahead: Optional[_Ahead] = None
        self._was_counted = self._has_ended = False
        self._asked: "SimpleQueue[Any]" = SimpleQueue()
        self._given: "SimpleQueue[Tuple[Any, Any]]" = SimpleQueue()
        context = contextvars.copy_context()
        work = (_work, self._asked, self._given)
        self._thread = threading.Thread(target=context.run, args=work, name="ahead", daemon=True)
        self._thread.start()

    def end(self) -> "Union[Windows, WindowsAhead]":
        """End the thread.

        RETURNS (Union[Windows, WindowsAhead]): What goes on without it: this, if a batch is taken
            that nobody has yet.
        """
        self._has_ended = True
        self._asked.put(None)
        # One that hangs keeps nobody from leaving.
        self._thread.join(END_SECONDS)
        return self.windows if self._ahead is None or self._thread.is_alive() else self

    def has_left(self, run: Any) -> bool:
        """See ``Windows``, here and below."""
        if self._ahead is not None and self._ahead.run is run:
            return True
        self.let_go()
        return self.windows.has_left(run)

    def next(self, order: Order) -> Batch:
        if self._ahead is not None and self._ahead.run is not order.run:
            self.let_go()
        batch = self.windows.next(order) if self._ahead is None else self._taken()
        if self._has_ended or not len(batch.rows):
            return batch
        prepare = self._prepare(batch)
        if batch.has_next:
            # From here on, and till it has given the batch, the order is the thread's.
            self._was_counted = self._was_counted or self.windows.n_examples(order) is not None
            self._ahead = _Ahead(order.run, self.windows.state_later(order))
            self._asked.put(partial(self._take, order, prepare))
        return batch

    def _take(self, order: Order, prepare: Callable[[Batch], None]) -> Batch:
        batch = self.windows.next(order)
        prepare(batch)
        return batch

    def _taken(self) -> Batch:
        """What the thread has taken, which is waited for.

        RAISES (Exception): What it raised.
        """
        batch, error = self._given.get()
        self._ahead = None
        if error is not None:
            raise error
        return batch

    def let_go(self) -> None:
        """Drop what was taken ahead: the order goes elsewhere."""
        if self._ahead is not None:
            with suppress(Exception):
                self._taken()

    def n_examples(self, order: Order) -> Optional[int]:
        is_unknown = self._ahead is not None and not self._was_counted
        return None if is_unknown else self.windows.n_examples(order)

    def state(self, order: Order) -> Dict[str, Any]:
        if self._ahead is not None and self._ahead.run is order.run:
            return self._ahead.state()
        return self.windows.state(order)

    def restore(self, state: Mapping[str, Any], run: Any) -> None:
        self.windows.restore(state, run)


class _Ahead(NamedTuple):
    """Of a batch that is taken ahead.

    run (Any): Of the epoch that it is of.
    state (Callable): Gives the state before it.
    """

    run: Any
    state: Callable[[], Dict[str, Any]]


def _work(asked: "SimpleQueue[Any]", given: "SimpleQueue[Tuple[Any, Any]]") -> None:
    while (task := asked.get()) is not None:
        try:
            given.put((task(), None))
        except BaseException as error:  # It comes out where the batch is wanted.
            given.put((None, error))
        del task
