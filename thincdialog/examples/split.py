"""One split of a task: reads its episodes, mutates and counts them, and cuts them into blocks."""

from functools import partial
from itertools import islice
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

import numpy as np

from ..contract import is_users, show, wrong_value
from ..errors import ConfigError, DataError, Problem
from ..formats.bad_data import BadData
from ..formats.bookmark import Bookmark
from ..formats.text_file import check_readable
from ..formats.tolerance import tolerance
from ..formats.wording import short
from ..messages import FIELDS, is_message
from .mutating import Episode, Source, mutated, own_mutator
from .store import MemoryStore, Store, collection_paused

# Where in a stream a part begins, as JSON values: the bookmark's ``mark``, how many episodes
# the mutators make of what stands between it and the part (`skip`), the `episode`'s number
# and the `part`'s.
Start = Dict[str, Any]
BEGIN: Start = {"skip": 0, "episode": 0, "part": 0}


class Block(NamedTuple):
    """Some episodes that are shown together.

    store (Store): Holds the episodes.
    order (np.ndarray): Their numbers in the store, in the order of the data, or in that of an
        epoch; int64.
    number (int): Place of the block in the data, from 0.
    start (Optional[Start]): Where a stream is to be read from to get them again.
    again (int): How often the data was shown whole before, within the epoch.
    task (int): Number of the task, in a mixture.
    """

    store: Store
    order: np.ndarray
    number: int
    start: Optional[Start] = None
    again: int = 0
    task: int = 0


class Split:
    """The episodes of a split, held in memory or read anew for each epoch.

    name (str): For instance "train".
    source (Union[Source, Store]): Gives the episodes in file order; the same ones at each
        call. One that can begin anywhere has a method `read_from` (see ``FileSource``). Or a
        store that holds them, which is shown as it is.
    mutators (Sequence): Applied in order (see ``mutators.mutator``); none to a store.
    candidates (Optional[Callable]): Gives the candidates of every message.
    streaming (bool): Read the source for each epoch instead of holding it.
    single_turn (bool): Whether the source's episodes are known to have one turn each.
    window (int): Episodes in a block.
    origin (str): What the data is, for error messages, unless the source has an
        `origin` of its own.
    text_fields (Sequence[str]): Fields that together hold every text once.
    endless (bool): Whether the source may never end; only training shows such data.
    """

    def __init__(
        self,
        name: str,
        source: Union[Source, Store],
        *,
        mutators: Sequence[Any] = (),
        candidates: Optional[Callable[[], List[str]]] = None,
        streaming: bool = False,
        single_turn: bool = False,
        window: int,
        origin: str,
        text_fields: Sequence[str] = ("text", "labels"),
        endless: bool = False,
    ):
        self.name = name
        self.source = source
        if isinstance(source, Store) and (mutators or candidates or streaming):
            text = f"the split '{name}' is a store, which is shown as it is"
            raise ConfigError([Problem("", text, "no mutators, no candidates, no streaming")])
        if isinstance(source, Store):
            source.check(name)
        elif not callable(source):
            text = f"the split '{name}' is {show(source)}"
            hint = "give a Store, or a function that gives episodes; IterableTeacher takes lists"
            raise ConfigError([Problem("", text, hint)])
        self.mutators = [own_mutator(mutator) for mutator in mutators]
        self.candidates = candidates
        self.streaming = streaming
        self.window = window
        self.origin = getattr(source, "origin", origin)
        self.text_fields = text_fields
        self.endless = endless
        self._single_turn = _stays_single(mutators, single_turn)
        self._store = source if isinstance(source, Store) else None
        self._lengths: Optional[np.ndarray] = None
        self._replies: Optional[List[str]] = None
        self._fixed: Optional[List[str]] = None

    def check_source(self) -> None:
        """See that the files it is read from, if any, are there.

        RAISES (DataError): If one cannot be read.
        """
        for path in self.files():
            check_readable(path)

    def files(self) -> List[str]:
        """The files it is read from, in their order, that of the fixed candidates last."""
        of_candidates = getattr(self.candidates, "path", None)
        return [*getattr(self.source, "paths", ()), *([of_candidates] if of_candidates else [])]

    def bad_data(self) -> List[BadData]:
        """Of each file, what could not be read and was left out when it was read at last."""
        found: Dict[str, BadData] = getattr(self.source, "bad", {})
        return [bad for bad in found.values() if bad.n_skipped]

    def about(self) -> str:
        """Which part of its files it is; "" if all of them."""
        return getattr(self.source, "about", "")

    def episodes(self, at: Optional[Bookmark] = None) -> Iterator[Episode]:
        """The mutated episodes in file order.

        at (Optional[Bookmark]): Lies where to begin, and is moved along, unless that
            cannot be: the source or a mutator has to see everything.
        RAISES (DataError): If there is none, or a label is not among the fixed
            candidates and such ones are not tolerated.
        """
        fixed = self.fixed_candidates()
        allowed = frozenset(fixed or ())
        at = at or Bookmark()
        read: Source = partial(self._read, at if self._can_begin_anywhere else None)
        for mutator in self.mutators:
            read = partial(mutated, mutator, read, self.name, self.origin)
        is_empty = at.file == 0 and at.is_at_begin
        for episode in read():
            if episode:
                is_empty = False
                if fixed is not None:
                    self._fix_candidates(episode, fixed, allowed)
                yield episode
        if is_empty:
            cause = ", or its mutators left none" if self.mutators else ""
            raise DataError(self.origin, f"the split '{self.name}' has no examples{cause}")

    def fixed_candidates(self) -> Optional[List[str]]:
        """The one list of candidates of all messages, if there is one."""
        if self.candidates is not None and self._fixed is None:
            self._fixed = self.candidates()
        return self._fixed

    def store(self) -> Store:
        """All episodes, read once."""
        if self._store is None:
            store = MemoryStore()
            with collection_paused():
                for episode in self.episodes():
                    store.append(episode)
            self._store = store
        return self._store

    @property
    def is_single_turn(self) -> bool:
        """Whether every episode has one turn (of a stream: whether it is declared so)."""
        if self.streaming:
            return self._single_turn
        return self.store().is_single_turn

    def lengths(self) -> np.ndarray:
        """Turns of each episode, int64; of a stream, by reading it once."""
        if self._lengths is None:
            if self.streaming:
                self._lengths = np.array([len(episode) for episode in self.episodes()])
            else:
                self._lengths = np.diff(np.asarray(self.store().starts))
        return self._lengths

    @property
    def is_counted(self) -> bool:
        """Whether the number of episodes is known without reading a stream."""
        return not self.streaming or self._lengths is not None

    def replies(self) -> Sequence[str]:
        """The first label of each example; of a stream, by reading it once."""
        if self._replies is None:
            if self.streaming:
                turns = (message for episode in self.episodes() for message in episode)
                self._replies = [turn["labels"][0] for turn in turns if turn.get("labels")]
            else:
                labels = self.store().all_cells("labels")
                self._replies = [answers[0] for answers in labels if answers]
        return self._replies

    def blocks(
        self, picked: Optional[np.ndarray], start: Optional[Start] = None
    ) -> Iterator[Block]:
        """The episodes in blocks of ``window``, in file order.

        picked (Optional[np.ndarray]): Numbers of the episodes to use, ascending;
            all if None.
        start (Optional[Start]): Of the block to begin with, if it is known.
        """
        return self._streamed(picked, start or BEGIN) if self.streaming else self._held(picked)

    def texts(self, n_blocks: Optional[int] = None) -> Iterator[str]:
        """Every text and label once, in file order.

        n_blocks (Optional[int]): Blocks of a stream to read; None for all.
        """
        use_text, use_labels, use_system = (
            name in self.text_fields for name in ("text", "labels", "system")
        )
        before = None
        streamed = (block.store for block in islice(self._streamed(None, BEGIN), n_blocks))
        for store in streamed if self.streaming else [self.store()]:
            columns = (store.all_cells(name) for name in ("text", "labels", "system"))
            for text, answers, system in zip(*columns):
                if use_system and system is not None and system != before:
                    yield system
                before = system
                if use_text and text is not None:
                    yield text
                if use_labels and answers:
                    yield from answers

    def _held(self, picked: Optional[np.ndarray]) -> Iterator[Block]:
        store = self.store()
        members = np.arange(store.n_episodes) if picked is None else picked
        for number, first in enumerate(range(0, len(members), self.window)):
            yield Block(store, members[first : first + self.window], number)

    def _streamed(self, picked: Optional[np.ndarray], start: Start) -> Iterator[Block]:
        wanted = None if picked is None else frozenset(picked.tolist())
        part = start["part"]
        store = MemoryStore(is_held=False)
        at = Bookmark(start)
        spot, skipped, n_since = (at.file, at.spot), start["skip"], 0
        for number, episode in enumerate(self.episodes(at), start["episode"] - start["skip"]):
            if (at.file, at.spot) != spot:
                spot, n_since = (at.file, at.spot), 0
            n_since += 1
            if skipped:
                skipped -= 1
            elif wanted is None or number in wanted:
                if not store.n_episodes:
                    own = {"skip": n_since - 1, "episode": number, "part": part}
                    start = {**at.mark(), **own}
                if self._single_turn and len(episode) > 1:
                    text = f"{short(episode[0]['id'])} was to be a single turn, but has more"
                    raise DataError(self.origin, text)
                store.append(episode)
            if store.n_episodes == self.window:
                yield Block(store, np.arange(store.n_episodes), part, start)
                store = MemoryStore(is_held=False)
                part += 1
        if store.n_episodes:
            yield Block(store, np.arange(store.n_episodes), part, start)

    @property
    def _can_begin_anywhere(self) -> bool:
        """Not if a mutator counts what it saw."""
        counts = any(hasattr(mutator, "rewrite") for mutator in self.mutators)
        return not counts and hasattr(self.source, "read_from")

    def _read(self, at: Optional[Bookmark]) -> Iterator[Episode]:
        episodes = self.source() if at is None else self.source.read_from(at)  # type: ignore
        if is_users(self.source):
            episodes = self._of_user(episodes)
        for number, episode in enumerate(episodes):
            for turn, message in enumerate(episode):
                if "id" not in message:
                    message["id"] = f"{number}/{turn}"
                if "eval_labels" in message:  # The split tells what they are for.
                    message.setdefault("labels", message["eval_labels"])
                    del message["eval_labels"]
            yield episode

    def _of_user(self, episodes: Any) -> Iterator[Episode]:
        """Episodes from a function of a user's: they are what they must be."""
        wanted = f"episodes: lists of Messages {FIELDS}"
        if not isinstance(episodes, Iterable):
            raise wrong_value(self.source, episodes, wanted)
        for episode in episodes:
            is_good = isinstance(episode, list) and all(map(is_message, episode))
            if not is_good:
                raise wrong_value(self.source, episode, f"{wanted}; this is one of them")
            yield episode

    def _fix_candidates(self, episode: Episode, fixed: List[str], allowed: FrozenSet[str]) -> None:
        for message in episode:
            for label in message.get("labels") or ():
                if label not in allowed and not tolerance().outside_labels:
                    text = (
                        f"the label {short(label)} of example {short(message['id'])} is not "
                        f"among the {len(fixed)} fixed candidates: add it to their file"
                    )
                    raise DataError(self.origin, text)
            message["label_candidates"] = fixed


def _stays_single(mutators: Sequence[Any], is_single: bool) -> bool:
    """Whether episodes have one turn behind the mutators, as far as is declared. One
    that declares nothing is taken to change turns, not to add any."""
    return is_single or any(getattr(mutator, "single_turn", False) for mutator in mutators)
