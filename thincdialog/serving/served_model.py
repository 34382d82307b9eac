"""A model of a server: answers all that waits in batches, and follows its folder."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, Optional, Sequence, Tuple

from ..files.saved_model import which_model
from ..messages import Message
from ..training.trained_model import Reply, TrainedModel
from .metrics import Metrics
from .request_body import Refusal

# Seconds between looks at a model's folder.
LOOK_SECONDS = 1.0
LOG = logging.getLogger("thincdialog.serving")
Load = Callable[[], TrainedModel]
# Computes for all models: several threads would each keep memory of their own.
THREAD = ThreadPoolExecutor(1, "answering")
# A message, ``top`` and ``threshold`` of ``TrainedModel.answer``, and the reply that is waited for.
Asked = Tuple[Message, int, Optional[float], "asyncio.Future[Reply]"]


class ServedModel:
    """Answers what waited while the last batch was computed; that is the next batch, or several if
    it has too many tokens for one. Batches are computed in a thread.

    name (str): What requests call it.
    load (Callable[[], TrainedModel]): Loads it, at first and when it has been replaced.
    max_waiting (int): Messages that may wait.
    metrics (Metrics): Counts what waits, and the sizes of batches.
    """

    def __init__(self, name: str, load: Load, max_waiting: int, metrics: Metrics):
        self.name, self.load, self.max_waiting = name, load, max_waiting
        self.sizes, self.gauge = metrics.batches.labels(name), metrics.waiting.labels(name)
        self.model = self._loaded()
        self.waiting: List[Asked] = []
        self.n_waiting = 0
        self._answering: Optional[asyncio.Task[None]] = None
        self._following: Optional[asyncio.Task[None]] = None

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
            raise Refusal(429, text)
        replies = [asyncio.get_running_loop().create_future() for _ in messages]
        self.waiting += ((each, top, threshold, r) for each, r in zip(messages, replies))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer_all())
        # An app that is mounted elsewhere hears of no start.
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow_folder())
        self._count(len(messages))
        try:
            return await asyncio.gather(*replies)
        finally:
            self._count(-len(messages))

    def _count(self, more: int) -> None:
        self.n_waiting += more
        self.gauge.set(self.n_waiting)

    async def _answer_all(self) -> None:
        while self.waiting:
            asked, self.waiting = self.waiting, []
            # Requests that took too long have cancelled theirs.
            await self._answer([each for each in asked if not each[-1].done()])

    async def _answer(self, asked: Sequence[Asked]) -> None:
        loop, model = asyncio.get_running_loop(), self.model
        top = max((top for _, top, *_ in asked), default=1)
        batches = model.in_batches([message for message, *_ in asked], top)
        try:
            while found := await loop.run_in_executor(THREAD, next, batches, None):
                self.sizes.observe(len(found[0]))
                for row, said in zip(*found):
                    _, top, threshold, reply = asked[row]
                    if not reply.done():
                        reply.set_result(model.read(said, top, threshold))
        except Exception as error:
            for each in asked:
                if not each[-1].done() and len(asked) > 1:
                    await self._answer([each])  # Another one may be at fault.
                elif not each[-1].done():
                    each[-1].set_exception(error)

    async def _follow_folder(self) -> None:
        """Take a model that replaces this one; the next batch is its first."""
        seen = which_model(self.model.path)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found = which_model(self.model.path)
            if found != seen and any(found):  # Between two renames there is none.
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
