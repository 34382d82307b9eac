"""A model of a server: answers all that waits in batches, and follows its folder."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, NamedTuple, Sequence

from ..errors import DialogError
from ..files.saved_model import which_model
from ..messages import Message
from ..training.trained_model import TrainedModel
from .metrics import Metrics
from .request_body import Refusal

# Seconds between looks at a model's folder.
LOOK_SECONDS = 1.0
LOG = logging.getLogger("thincdialog.serving")


class Asked(NamedTuple):
    """A message that waits, with the number of candidates to give and its future reply."""

    message: Message
    top: int
    reply: "asyncio.Future[Message]"


class ServedModel:
    """Answers what waited while the last batch was computed; that is the next batch, or several if
    it has too many tokens for one. Batches are computed in a thread.

    name (str): What requests call it.
    load (Callable[[], TrainedModel]): Loads the model, at first and when it has been replaced.
    thread (ThreadPoolExecutor): Computes, for all models of a server.
    max_waiting (int): Messages that may wait.
    metrics (Metrics): Counts what waits, and the sizes of batches.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], TrainedModel],
        thread: ThreadPoolExecutor,
        max_waiting: int,
        metrics: Metrics,
    ):
        self.name, self.load, self.thread = name, load, thread
        self.max_waiting = max_waiting
        self.sizes, self.gauge = metrics.batches.labels(name), metrics.waiting.labels(name)
        self.model = load()
        warm_up(self.model)
        self.waiting: List[Asked] = []
        self.n_waiting = 0
        self._tasks: List[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()

    async def ask(self, messages: Sequence[Message], top: int, seconds: float) -> List[Message]:
        """Wait for the agent's replies to messages.

        top (int): Candidates that a reply must hold, if there are as many.
        seconds (float): To wait at most.
        RAISES (Refusal): If too many messages wait, or there is no answer in time.
        """
        if self.n_waiting + len(messages) > self.max_waiting:
            text = f"{self.n_waiting:,} messages wait for '{self.name}' already. Try again."
            raise Refusal(429, text, code="rate_limit_exceeded", headers={"Retry-After": "1"})
        # An app that is mounted elsewhere hears of no start.
        if not self._tasks or self._tasks[0].done():
            self.waiting, self._arrived = [], asyncio.Event()
            work = (self._answer_all(), self._follow_folder())
            self._tasks = list(map(asyncio.create_task, work))
        loop = asyncio.get_running_loop()
        asked = [Asked(message, top, loop.create_future()) for message in messages]
        self.waiting += asked
        self.n_waiting += len(asked)
        self.gauge.inc(len(asked))
        self._arrived.set()
        try:
            _, late = await asyncio.wait([each.reply for each in asked], timeout=seconds)
            if late:
                text = f"There was no answer within {seconds:g} seconds."
                raise Refusal(503, text, code="timeout")
            return [each.reply.result() for each in asked]
        finally:
            for each in asked:
                # asyncio logs errors that are not read.
                if not each.reply.cancel():
                    each.reply.exception()
            self.n_waiting -= len(asked)
            self.gauge.dec(len(asked))

    async def _answer_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            asked, self.waiting = self.waiting, []
            # Clients that gave up have cancelled theirs.
            await self._answer_each([each for each in asked if not each.reply.done()])

    async def _answer_each(self, asked: Sequence[Asked]) -> None:
        try:
            await self._answer(asked)
        except Exception as error:
            for each in asked:
                if each.reply.done():
                    continue
                if len(asked) == 1:
                    each.reply.set_exception(error)
                else:  # One of them is at fault: the others have their answers without it.
                    await self._answer_each([each])

    async def _answer(self, asked: Sequence[Asked]) -> None:
        loop, top = asyncio.get_running_loop(), max((each.top for each in asked), default=1)

        def work() -> None:
            messages = [each.message for each in asked]
            for rows, replies in self.model.in_batches(messages, top):
                loop.call_soon_threadsafe(deliver, rows, replies)

        def deliver(rows: Sequence[int], replies: Sequence[Message]) -> None:
            self.sizes.observe(len(rows))
            for row, reply in zip(rows, replies):
                if not asked[row].reply.done():
                    asked[row].reply.set_result(reply)

        await loop.run_in_executor(self.thread, work)

    async def _follow_folder(self) -> None:
        """Take a model that replaces this one; the next batch is its first."""
        seen = which_model(self.model.path)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found = which_model(self.model.path)
            if found == seen or not any(found):  # Between two renames there is none.
                continue
            seen = found
            try:
                model = await asyncio.to_thread(self.load)
                await asyncio.to_thread(warm_up, model)
            except DialogError as error:
                LOG.error("%s; the old model of '%s' still answers", error, self.name)
            else:
                self.model = model
                LOG.warning("'%s' was replaced; the new model answers", self.name)


def warm_up(model: TrainedModel) -> None:
    """Let a model encode its candidates before the first request."""
    if not model.agent.reading().n_features:
        model.answer([Message(text="Hello!")])
