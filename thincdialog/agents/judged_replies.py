"""What an agent would have replied to examples from which it learns."""

from typing import Any, Callable, Iterable, List, Sequence

from ..messages import Columns


class JudgedReplies(Columns):
    """The replies to a batch. Seldom does anybody look at them while an agent learns, so their
    texts are found when somebody does.

    numbers (Ints1d): Which text each is, shape (n_examples,), int64; on any device.
    texts (Callable[[], Sequence[str]]): Gives what there was to reply with.
    losses (Floats1d): Of the examples (nats), shape (n_examples,); on any device.
    """

    __slots__ = ("numbers", "texts", "losses")

    def __init__(self, numbers: Any, texts: Callable[[], Sequence[str]], losses: Any):
        self.numbers, self.texts, self.losses = numbers, texts, losses

    def __len__(self) -> int:
        return len(self.numbers)

    def names(self) -> Iterable[str]:
        return ("text", "loss")

    def column(self, name: str) -> List[Any]:
        if name == "loss":
            return list(self.losses.tolist())
        if name != "text":
            return [None] * len(self.numbers)
        texts = self.texts()
        return [texts[number] for number in self.numbers.tolist()]
