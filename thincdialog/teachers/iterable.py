"""A teacher of episodes from Python: lists, or functions that return iterables."""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from ..contract import place_of, show, users_line, wrong_value
from ..errors import DataError
from ..formats.candidates import list_texts
from ..formats.wording import kind, short
from ..messages import Episode, Message
from .teacher import Mutators, Teacher

Episodes = Union[Sequence[Any], Callable[[], Iterable[Any]]]


class IterableTeacher(Teacher):
    """Show episodes from Python code.

        IterableTeacher({"train": [[("hi", "hello"), ("how are you?", "fine")]]})

    An episode is a list of messages; a message is a mapping with `text` (or
    `features`) and `labels` (a string, or a list of them), or a pair (text, label). A
    message instead of an episode is an episode of one message.

    splits (Dict[str, Episodes]): Split name to a list of episodes, or to a function
        that returns an iterable of the same episodes at each call (needed for streaming).
    candidates (Optional[List[str]]): Candidates for all messages.
    mutators (Mutators): Mutators to apply in order while the data is read.
    streaming (bool): Call the functions for every epoch instead of holding the episodes in memory.
    shuffle_window (int): Number of episodes that are shuffled together, see ``Teacher``.
    task (str): Name of the task, for error messages.
    endless (bool): In training, show the data again, in another order, whenever it ends. Such
        data is streamed and may itself be endless.
    """

    def __init__(
        self,
        splits: Dict[str, Episodes],
        *,
        candidates: Optional[List[str]] = None,
        mutators: Mutators = None,
        streaming: bool = False,
        shuffle_window: int = 65536,
        task: str = "task",
        endless: bool = False,
    ):
        for split, episodes in splits.items() if streaming or endless else ():
            if isinstance(episodes, Iterator):
                text = "can be read only once: pass a function that returns a new one at each call"
                raise DataError(f"{task}/{split}", f"is {show(episodes)}, which {text}")
        super().__init__(
            {split: _Source(episodes, f"{task}/{split}") for split, episodes in splits.items()},
            candidates=None if candidates is None else lambda: list(candidates),
            mutators=mutators,
            streaming=streaming,
            shuffle_window=shuffle_window,
            origin=task,
            endless=endless,
        )
        self.id = task


class _Source:
    def __init__(self, episodes: Episodes, origin: str):
        self.episodes = episodes
        self.origin = origin
        place = place_of(episodes) if callable(episodes) else users_line()
        self.given_by = f" ({place})" if place else ""

    def __call__(self) -> Iterator[Episode]:
        is_function = callable(self.episodes)
        episodes: Any = self.episodes() if is_function else self.episodes  # type: ignore[operator]
        if not isinstance(episodes, Iterable):
            wanted = "an iterable of episodes"
            if is_function:
                raise wrong_value(self.episodes, episodes, wanted)
            raise DataError(self.origin, f"is {show(episodes)}: expected {wanted}{self.given_by}")
        for number, episode in enumerate(episodes):
            examples = [episode] if _is_example(episode) else episode
            if isinstance(examples, (str, bytes)) or not isinstance(examples, Iterable):
                text = f"episode {number} is {short(examples)}: expected a list of messages"
                raise DataError(self.origin, text + self.given_by)
            yield [self._message(example, number) for example in examples]

    def _message(self, example: Any, number: int) -> Message:
        where = f"a message of episode {number}"
        if not _is_example(example):
            text = f"{where} is {short(example)}: expected a mapping or a pair of strings"
            raise DataError(self.origin, f"{text} (text, label){self.given_by}")
        is_mapping = isinstance(example, Mapping)
        message = Message(example if is_mapping else {"text": example[0], "labels": example[1]})
        if "eval_labels" in message:
            message.setdefault("labels", message.pop("eval_labels"))
        if "text" not in message and "features" in message:
            message["text"] = ""
        if not isinstance(message.get("text"), str):
            found = f"has {kind(message['text'])} as" if "text" in message else "lacks"
            text = f"{where} {found} 'text': expected a string"
            raise DataError(self.origin, text + self.given_by)
        list_texts(message, self.origin, where, self.given_by)
        return message


def _is_example(value: Any) -> bool:
    """Return whether a value is a message: a mapping, or a pair of strings."""
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2
    is_pair = is_pair and all(isinstance(part, str) for part in value)
    return is_pair or isinstance(value, Mapping)
