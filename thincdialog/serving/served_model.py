"""A model of a server: answers all that waits in batches, and follows its folder."""

import asyncio
import gc
import logging
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..files.saved_model import which_model
from ..messages import Message
from ..training.trained_model import MAX_TOGETHER, Reply, TrainedModel
from .metrics import Metrics
from .request_body import Refusal

# Seconds between looks at a model's folder.
LOOK_SECONDS = 1.0
LOG = logging.getLogger("thincdialog.serving")
Load = Callable[[], TrainedModel]
# Computes for all models: several threads would each keep memory of their own.
THREAD = ThreadPoolExecutor(1, "answering")


# Arguments of ``ServedModel.ask``, and the replies that are waited for.
Asked = Tuple[Sequence[Message], int, "asyncio.Future[Any]"]


class ServedModel:
    """Answers what waited while the last batch was computed; that is the next batch, or several if
    it has too many tokens for one. Batches are computed in a thread.

    name (str): What requests call it.
    load (Callable[[], TrainedModel]): Loads it, at first and when it has been replaced.
    threshold (Optional[float]): Of its replies; see ``TrainedModel.answer``.
    max_waiting (int): Requests that may wait.
    metrics (Metrics): Counts what waits, and the sizes of batches.
    """

    def __init__(self, name: str, load: Load, threshold: Any, max_waiting: int, metrics: Metrics):
        self.name, self.load, self.threshold, self.max_waiting = name, load, threshold, max_waiting
        self.sizes, self.gauge = metrics.batches.labels(name), metrics.waiting.labels(name)
        self.model = self._loaded()
        self.waiting: List[Asked] = []
        self._tasks: Dict[Any, asyncio.Task[None]] = {}

    def _loaded(self) -> TrainedModel:
        """The model; it has encoded its candidates before the first request."""
        model = self.load()
        self._seen = which_model(model.path)
        model.answer([Message(text="Hello!")], threshold=self.threshold)
        # Looking through all that stays would stop the answers for a quarter of a second at times.
        gc.freeze()
        return model

    async def ask(self, messages: Sequence[Message], top: int = 1) -> List[Reply]:
        """Wait for the replies to messages; arguments as of ``TrainedModel.answer``.

        RAISES (Refusal): If too many requests wait.
        """
        if len(self.waiting) >= self.max_waiting:
            text = f"{len(self.waiting):,} requests wait for '{self.name}' already. Try again."
            raise Refusal(429, text, None, "rate_limit_exceeded", {"Retry-After": "1"})
        replies = asyncio.get_running_loop().create_future()
        self.waiting.append((messages, top, replies))
        # An app that is mounted elsewhere hears of no start.
        for work in (self._answer_all, self._follow_folder):
            if work not in self._tasks or self._tasks[work].done():
                self._tasks[work] = asyncio.create_task(work())
        with self.gauge.track_inprogress():
            found = await replies
        if isinstance(found, Exception):
            raise found
        return found

    async def _answer_all(self) -> None:
        while self.waiting:
            # Requests that took too long have cancelled theirs.
            self.waiting = [each for each in self.waiting if not each[-1].done()]
            sizes = accumulate(len(messages) for messages, *_ in self.waiting)
            asked = self.waiting[: 1 + sum(size < MAX_TOGETHER for size in sizes)]
            found = await asyncio.get_running_loop().run_in_executor(THREAD, self._answer, asked)
            del self.waiting[: len(asked)]
            for (*_, replies), each in zip(asked, found):
                if not replies.done():
                    replies.set_result(each)

    def _answer(self, asked: Sequence[Asked]) -> List[Any]:
        """The replies to each request, or the error that it ends in."""
        messages = [message for some, *_ in asked for message in some]
        model, top, least = self.model, max((n for _, n, _ in asked), default=1), self.threshold
        try:
            said = iter(model.replies(messages, top, self.sizes.observe))
            return [[model.read(next(said), n, least) for _ in some] for some, n, _ in asked]
        except Exception as error:  # Another one may be at fault.
            return [error] if len(asked) == 1 else [self._answer([each])[0] for each in asked]

    async def _follow_folder(self) -> None:
        """Take a model that replaces this one; the next batch is its first."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found = which_model(self.model.path)
            if found != self._seen and any(found):  # Between two renames there is none.
                self._seen = found
                try:
                    self.model = await asyncio.to_thread(self._loaded)
                    LOG.warning("'%s' was replaced; the new model answers", self.name)
                except Exception as error:  # An agent's own code may fail in any way.
                    LOG.error("the old model of '%s' still answers: %s", self.name, error)
