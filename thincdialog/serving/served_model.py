"""A model of a server, which answers waiting requests in batches and reloads when its folder
changes."""

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

# Seconds between checks of a model's folder.
LOOK_SECONDS = 1.0
LOG = logging.getLogger("thincdialog.serving")
Load = Callable[[], TrainedModel]
# One thread computes for all models, because each further thread would keep memory of its own.
THREAD = ThreadPoolExecutor(1, "answering")


# Arguments of ``ServedModel.ask``, and the future for the replies.
Asked = Tuple[Sequence[Message], int, "asyncio.Future[Any]"]


class ServedModel:
    """Answer requests in batches. All requests that arrive while a batch is computed make up the
    next batch, or several batches if they have too many tokens for one. Batches are computed in a
    thread.

    name (str): Name of the model in requests.
    load (Callable[[], TrainedModel]): Loads the model, at first and after it has been replaced.
    threshold (Optional[float]): Threshold of replies; see ``TrainedModel.answer``.
    max_waiting (int): Maximum number of waiting requests.
    metrics (Metrics): Counts waiting requests and the sizes of batches.
    """

    def __init__(self, name: str, load: Load, threshold: Any, max_waiting: int, metrics: Metrics):
        self.name, self.load, self.threshold, self.max_waiting = name, load, threshold, max_waiting
        self.sizes, self.gauge = metrics.batches.labels(name), metrics.waiting.labels(name)
        self.model = self._loaded()
        self.waiting: List[Asked] = []
        self._tasks: Dict[Any, asyncio.Task[None]] = {}

    def _loaded(self) -> TrainedModel:
        """Load the model, and answer a message so that candidates are encoded before the first
        request."""
        model = self.load()
        self._seen = which_model(model.path)
        model.answer([Message(text="Hello!")], threshold=self.threshold)
        # Otherwise, garbage collection of long-lived objects would sometimes delay answers by
        # 0.25 s.
        gc.freeze()
        return model

    async def ask(self, messages: Sequence[Message], top: int = 1) -> List[Reply]:
        """Wait for the replies to messages. Arguments are as for ``TrainedModel.answer``.

        RAISES (Refusal): If too many requests wait.
        """
        if len(self.waiting) >= self.max_waiting:
            text = f"{len(self.waiting):,} requests already wait for '{self.name}'. Try again."
            raise Refusal(429, text, None, "rate_limit_exceeded", {"Retry-After": "1"})
        replies = asyncio.get_running_loop().create_future()
        self.waiting.append((messages, top, replies))
        # Started here, because a mounted application receives no startup event.
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
            # Requests that took too long have cancelled their futures.
            self.waiting = [each for each in self.waiting if not each[-1].done()]
            sizes = accumulate(len(messages) for messages, *_ in self.waiting)
            asked = self.waiting[: 1 + sum(size < MAX_TOGETHER for size in sizes)]
            found = await asyncio.get_running_loop().run_in_executor(THREAD, self._answer, asked)
            del self.waiting[: len(asked)]
            for (*_, replies), each in zip(asked, found):
                if not replies.done():
                    replies.set_result(each)

    def _answer(self, asked: Sequence[Asked]) -> List[Any]:
        """Return the replies to each request, or the error that it caused."""
        messages = [message for some, *_ in asked for message in some]
        model, top, least = self.model, max((n for _, n, _ in asked), default=1), self.threshold
        try:
            said = iter(model.replies(messages, top, self.sizes.observe))
            return [
                [model.read(each, next(said), n, least) for each in some] for some, n, _ in asked
            ]
        except Exception as error:  # Another request of the batch may have caused it.
            return [error] if len(asked) == 1 else [self._answer([each])[0] for each in asked]

    async def _follow_folder(self) -> None:
        """Replace the model when its folder changes; the next batch uses the new model."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found = which_model(self.model.path)
            if found != self._seen and any(found):  # Between two renames, there is no model.
                self._seen = found
                try:
                    self.model = await asyncio.to_thread(self._loaded)
                    LOG.warning("'%s' was replaced; the new model answers", self.name)
                except Exception as error:  # Custom agents may raise any error.
                    LOG.error("the old model of '%s' still answers: %s", self.name, error)
