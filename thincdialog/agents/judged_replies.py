"""What an agent would have replied to examples from which it learns."""

from typing import Any, Callable, Iterable, List, Sequence

import numpy as np

from ..messages import Columns


class JudgedReplies(Columns):
    """The replies to a batch. Seldom does anybody look at them while an agent learns, so their
    texts are found when somebody does.

    numbers (np.ndarray): Which text each is, shape (n_examples,), int64.
    texts (Callable[[], Sequence[str]]): Gives what there was to reply with.
    """

    __slots__ = ("numbers", "texts")

    def __init__(self, numbers: np.ndarray, texts: Callable[[], Sequence[str]]):
        self.numbers, self.texts = numbers, texts

    def __len__(self) -> int:
        return len(self.numbers)

    def names(self) -> Iterable[str]:
        return ("text",)

    def column(self, name: str) -> List[Any]:
        if name != "text":
            return [None] * len(self.numbers)
        texts = self.texts()
        return [texts[number] for number in self.numbers.tolist()]
