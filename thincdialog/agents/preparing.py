"""What is done with batches before an agent learns them on a GPU: with each next one, while one is
learnt."""

import weakref
from collections import Counter, deque
from functools import partial
from typing import Any, Callable, Deque, NamedTuple, Optional

from ..examples.batch import Batch
from ..ops.copies_ahead import CopiesAhead
from ..ops.device_memory import is_out_of_memory
from ..ops.known_numbers import MOST_BEFORE, OnHost, Packed, Stream, on_device
from .plan import Plan


class Prepared(NamedTuple):
    """What was made of a batch ahead.

    counts (Counter): Of the texts that were read.
    draws (Stream): What random draws of it follow from.
    packed (Packed): The plan's arrays, on their way to the device.
    """

    plan: Plan
    counts: Counter
    draws: Stream
    packed: Packed


class Preparing:
    """Makes the plan of a batch: texts become ids, what layers derive of them is derived, and one
    copy brings all of it to the device.

    agent (ModelAgent): Who learns; its ops are CuPy's.
    n (int): Batches of a step.
    """

    def __init__(self, agent: Any, n: int):
        self.agent, self.n = agent, n
        text = agent.text_encoder
        self._text = None if text is None else text.replica()
        self._copies = CopiesAhead(agent.model.ops.xp)
        # What was prepared last, or could not be.
        self._seen: Callable[[], Optional[Batch]] = lambda: None
        # Those before in the same step, the newest first.
        self._before: Deque[OnHost] = deque(maxlen=min(n - 1, MOST_BEFORE))

    def __call__(self, batch: Batch) -> Callable[[Batch], None]:
        """Called before a batch is learnt. The first of an epoch is prepared here, as the thread
        has not seen it.

        RETURNS (Callable): What a thread is to do with the next one.
        """
        with on_device(self.agent.model.ops):
            self._copies.let_go()
            asked = self.agent.model.ops.known_numbers.asked()
            if batch is not self._seen():
                self._prepare(self.agent.draws, asked, batch)
        return partial(self._prepare, self.agent.next_draws(self.n), asked)

    def _prepare(self, draws: Stream, asked: Any, batch: Batch) -> None:
        self._seen = weakref.ref(batch)
        batch, agent, text = batch.labelled(), self.agent, self._text
        *_, number = draws
        counts = Counter() if text is None else text.counts
        counts.clear()
        try:
            plan: Plan = agent.plan(batch, text)
        except Exception:
            return  # Who learns it comes upon the same.
        if not len(plan.batch.rows):
            return
        ops = agent.model.ops
        # CuPy's current device is each thread's own.
        ops.xp.cuda.Device(ops.device_id).use()
        try:
            given = ((*plan.role, number), plan.arrays(), asked, draws, self._copies)
            packed = ops.known_numbers.pack(*given, list(self._before)[:number])
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return  # Training on the batch makes its plan again, or raises the error.
        self._before.appendleft(packed.on_host)
        batch.prepared = Prepared(plan, Counter(counts), draws, packed)
