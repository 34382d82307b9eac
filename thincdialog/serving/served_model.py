"""A model of a server: answers all that waits in batches, and follows its folder."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, NamedTuple, Optional, Sequence

from ..files.saved_model import which_model
from ..messages import Message
from ..training.trained_model import Reply, TrainedModel
from .metrics import Metrics
from .request_body import Refusal

# Seconds between looks at a model's folder.
LOOK_SECONDS = 1.0
LOG = logging.getLogger("thincdialog.serving")


class Asked(NamedTuple):
    """A message that waits for its reply, with arguments of ``TrainedModel.answer``."""

    message: Message
    top: int
    threshold: Optional[float]
    reply: "asyncio.Future[Reply]"


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
        self.model = self._loaded()
        self.waiting: List[Asked] = []
        self.n_waiting = 0
        self._tasks: List[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()

    async def ask(
        self, messages: Sequence[Message], top: int, threshold: Optional[float]
    ) -> List[Reply]:
        """Wait for the replies to messages; arguments as of ``TrainedModel.answer``.

        RAISES (Refusal): If too many messages wait, or these alone are too many.
        """
        if len(messages) > self.max_waiting:  # Trying again would not help.
            text = f"{len(messages):,} texts at once, and this server takes {self.max_waiting:,}."
            raise Refusal(413, text)
        if self.n_waiting + len(messages) > self.max_waiting:
            text = f"{self.n_waiting:,} messages wait for '{self.name}' already. Try again."
            raise Refusal(429, text, code="rate_limit_exceeded", headers={"Retry-After": "1"})
        # An app that is mounted elsewhere hears of no start.
        if not self._tasks or self._tasks[0].done():
            self.waiting, self._arrived = [], asyncio.Event()
            work = (self._answer_all(), self._follow_folder())
            self._tasks = list(map(asyncio.create_task, work))
        replies = [asyncio.get_running_loop().create_future() for _ in messages]
        self.waiting += (Asked(each, top, threshold, r) for each, r in zip(messages, replies))
        self._arrived.set()
        self._count(len(messages))
        try:
            return await asyncio.gather(*replies)
        finally:
            self._count(-len(messages))

    def _count(self, more: int) -> None:
        self.n_waiting += more
        self.gauge.set(self.n_waiting)

    async def _answer_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            asked, self.waiting = self.waiting, []
            # Requests that took too long have cancelled theirs.
            await self._answer([each for each in asked if not each.reply.done()])

    async def _answer(self, asked: Sequence[Asked]) -> None:
        loop, model = asyncio.get_running_loop(), self.model

        def work() -> None:
            top = max((each.top for each in asked), default=1)
            for rows, said in model.in_batches([each.message for each in asked], top):
                of_rows = [asked[row] for row in rows]
                read = [model.read(s, a.top, a.threshold) for s, a in zip(said, of_rows)]
                loop.call_soon_threadsafe(deliver, of_rows, read)

        def deliver(asked: Sequence[Asked], replies: Sequence[Reply]) -> None:
            self.sizes.observe(len(asked))
            for each, reply in zip(asked, replies):
                if not each.reply.done():
                    each.reply.set_result(reply)

        try:
            await loop.run_in_executor(self.thread, work)
        except Exception as error:
            for each in asked:
                if not each.reply.done() and len(asked) > 1:
                    await self._answer([each])  # Another one may be at fault.
                elif not each.reply.done():
                    each.reply.set_exception(error)

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
                self.model = await asyncio.to_thread(self._loaded)
                LOG.warning("'%s' was replaced; the new model answers", self.name)
            except Exception as error:  # An agent's own code may fail in any way.
                LOG.error("%s; the old model of '%s' still answers", error, self.name)

    def _loaded(self) -> TrainedModel:
        """The model; it has encoded its candidates before the first request."""
        model = self.load()
        if not model.agent.reading().n_features:
            model.answer([Message(text="Hello!")])
        return model
