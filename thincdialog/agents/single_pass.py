"""Survey the training data and use its texts in a single pass over streams."""

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Semaphore
from typing import Any, Callable, Iterable, Iterator, List, TypeVar

from ..examples.split import Split
from ..examples.store import Store
from ..teachers import Teacher

ResultT = TypeVar("ResultT")


def surveyed(
    survey: Callable[[Teacher], None], train: Teacher, use: Callable[[Iterable[str]], ResultT]
) -> Callable[[], ResultT]:
    """Survey the training data. A thread uses the texts of streams as the survey reads them, so
    that their sources are not read again.

    survey (Callable): Reads the data, usually once and completely.
    train (Teacher): Teacher of the training data.
    use (Callable): Takes all texts of the data, in their order.
    RETURNS (Callable): Waits for the thread, and returns the result of ``use`` or raises its error.
        If the survey has not read every stream completely, it calls ``use`` again, and reads all
        texts for it.
    """
    splits: List[Split] = [task.data[task.split] for task in train.by_task().values()]
    if not any(split.streaming for split in splits):
        survey(train)
        return lambda: use(train.texts())
    # Adding the end to the queue must never wait, so the queue itself has no limit: a semaphore
    # limits the number of parts in it.
    parts: "SimpleQueue[Any]" = SimpleQueue()
    free = Semaphore(2)
    unread: List[Split] = []

    def send(*part: Any) -> None:
        free.acquire()
        parts.put(part)

    def receive() -> Iterator[Any]:
        for part in iter(parts.get, None):
            free.release()
            yield part

    received = receive()

    def stores_of(split: Split) -> Iterator[Store]:
        for source, store in received:
            if source is not split:
                break
            if store is None:
                return
            yield store
        unread.append(split)
        raise EOFError

    def texts() -> Iterator[str]:
        for split in splits:
            yield from split.texts_of(stores_of(split) if split.streaming else [split.store()])

    def use_parts() -> ResultT:
        try:
            return use(texts())
        finally:
            for _ in received:  # The survey must not wait for a thread that needs no more texts.
                pass

    train.n_examples  # noqa: B018  # Read data in memory here, not in the thread.
    with ThreadPoolExecutor(1) as pool:
        try:
            used = pool.submit(use_parts)
            for split in splits:
                split.listener = send
            survey(train)
        finally:
            for split in splits:
                split.listener = None
            parts.put(None)
    return lambda: use(train.texts()) if unread else used.result()
