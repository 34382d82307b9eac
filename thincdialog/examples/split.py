"""One split of a task: read, mutate and count its episodes, and cut them into blocks."""

import copy
import gc
from collections import Counter
from functools import cached_property, partial
from itertools import islice
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Generator,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

from ..contract import check_attributes, is_users, show, wrong_value
from ..errors import ConfigError, DataError, Problem
from ..formats.context import BadData, Bookmark, tolerance
from ..formats.spellings import Place
from ..formats.text_file import check_readable
from ..formats.wording import short
from ..messages import FIELDS, Message, is_message
from . import blocks
from .blocks import Block
from .encoded import Encoding
from .mapped_store import MappedStore
from .memory_store import MemoryStore
from .mutating import Episode, Source, mutated, own_mutator
from .reading import BEGIN, NO_END, Readers, Start, are_apart
from .sharded import ByNumber, ByPart, Sharded, sharded
from .store import Store, collection_paused

# If this number of examples or more is in memory, the examples are hidden from the garbage
# collector, because each collection would take seconds.
MANY = 100_000
# Number of episodes of a shard of a store, and of a block if no window is set.
SHARD_SIZE = 1 << 12
# Number of a stream's first episodes that stay in memory, because much code before and after
# training uses only the first episodes.
BEGINNING = 4096
# Number of episodes from custom code, which may leave reference cycles, between two collections of
# new garbage.
N_BETWEEN = 256


class Split:
    """Provide the episodes of a split, held in memory or read again for each epoch.

    name (str): Name of the split, for example "train".
    source (Union[Source, Store]): Function that returns the episodes in file order, the same ones
        at each call. A source that can start anywhere has a method `read_from` (see
        ``FileSource``), or returns episodes by number or by part (see ``Sharded``). Or a store
        that holds the episodes, which is shown unchanged.
    mutators (Sequence): Mutators, applied in order (see ``mutators.mutator``); not allowed for a
        store.
    candidates (Optional[Callable]): Returns the candidates that all messages share.
    streaming (bool): Whether to read the source for each epoch instead of holding it in memory.
    single_turn (bool): Whether the source's episodes are known to have one turn each.
    window (int): Number of episodes in a block; 0 for one block of all episodes, unless they are
        streamed.
    origin (str): Description of the data for error messages, unless the source has an
        attribute `origin`.
    text_fields (Sequence[str]): Fields that together hold every text once.
    endless (bool): Whether the source may never end; only training shows such data.
    built_store (Optional[MappedStore]): Store that replaces the source, if any.
    beginning (Optional[MemoryStore]): The first episodes of a stream, once they were read.
    is_short (bool): Whether ``beginning`` has all episodes of the stream.
    listener (Optional[Callable]): Called with this split and each store of the next reading of the
        whole stream; with None instead of a store at its end.
    """

    listener: Optional[Callable[["Split", Optional[Store]], None]] = None

    def __init__(
        self,
        name: str,
        source: Union[Source, ByNumber, ByPart, Store],
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
        self.source = source if isinstance(source, Store) else sharded(source)
        # The source as the caller passed it, which may be custom code.
        self._given = self.source.read if isinstance(self.source, Sharded) else source
        # Other processes that read the split, if any, and a function that returns the encoding
        # with which tokens are made, if any.
        self.readers: Optional[Readers] = None
        self.encoding: Optional[Callable[[], Optional[Encoding]]] = None
        if isinstance(source, Store) and (mutators or candidates or streaming):
            text = f"the split '{name}' is a store, which cannot be changed"
            raise ConfigError([Problem("", text, "remove mutators, candidates and streaming")])
        if isinstance(source, Store):
            check_attributes(source)
            if "id" not in source.names:
                text = f"the store of the split '{name}' has no field 'id'"
                raise ConfigError([Problem("", text, "add this field")])
        elif not callable(self.source):
            text = f"the split '{name}' is {show(source)}"
            hint = "give a Store, or a function that yields episodes; IterableTeacher accepts lists"
            raise ConfigError([Problem("", text, hint)])
        self.mutators = [own_mutator(mutator) for mutator in mutators]
        self.candidates = candidates
        self.streaming = streaming
        self.window = window
        self.origin = getattr(self.source, "origin", origin)
        self.text_fields = text_fields
        self.endless = endless
        self._single_turn = _keep_single(mutators, single_turn)
        self._store = source if isinstance(source, Store) else None
        self.built_store: Optional[MappedStore] = None
        self.beginning: Optional[MemoryStore] = None
        self.is_short = self.may_be_empty = False
        self._lengths: Optional[np.ndarray] = None
        self._replies: Optional[List[str]] = None

    def set_window(self, n_episodes: int, is_stored: bool) -> None:
        """Set the number of episodes per block; 0 for one block of all episodes.

        is_stored (bool): Whether a store will replace a stream.
        RAISES (ConfigError): If a stream would be one block.
        """
        if self.streaming and not n_episodes and not is_stored:
            text = f"the split '{self.name}' is a stream, which cannot be shuffled as a whole"
            hint = "set [loader] shuffle_window to as many episodes as fit into memory, or a store"
            raise ConfigError([Problem("", text, hint)])
        self.window = n_episodes

    def use(self, store: MappedStore) -> None:
        """Show a store that was built from these episodes instead of the source."""
        self._store = self.built_store = store
        self.compare_labels(store)
        self.streaming = False
        self._lengths = self._replies = self.beginning = None

    def check_source(self) -> None:
        """Check that the files of the split, if any, exist.

        RAISES (DataError): If a file cannot be read, or is a folder where a file is needed.
        """
        with_folders = self.data_files() if getattr(self.source, "takes_folders", True) else ()
        for path in self.files():
            check_readable(path, or_folder=path in with_folders)

    def files(self) -> List[str]:
        """Return the data files in order, followed by the layout file and the file of fixed
        candidates, if there are any."""
        more = [getattr(self.source, "layout_file", ""), getattr(self.candidates, "path", "")]
        return [*self.data_files(), *filter(None, more)]

    def data_files(self) -> List[str]:
        """Return only the files, or folders, with the examples."""
        return list(getattr(self.source, "paths", ()))

    def bad_data(self) -> List[BadData]:
        """Return the bad data of each file, from its last reading or from the built store."""
        found: Dict[str, BadData] = getattr(self.source, "bad", {})
        found = found or getattr(self.built_store, "bad", {})
        return [bad for bad in found.values() if any((bad.n_skipped, bad.n_without, bad.note))]

    def about(self) -> str:
        """Describe the part of the files that the split uses; "" if it uses all of them."""
        return getattr(self.source, "about", "")

    def episodes(self) -> Iterator[Episode]:
        """Yield the mutated episodes in file order.

        RAISES (DataError): If there is no episode, or if a label is not among the fixed
            candidates and this is not tolerated.
        """
        is_empty = True
        for episode in self.after_mutators(partial(self.source_episodes, None)):
            is_empty = False
            for message in episode if self.fixed_candidates is not None else ():
                message["label_candidates"] = self.fixed_candidates
            yield episode
        if is_empty and not self.may_be_empty:
            cause = ", or its mutators left none" if self.mutators else ""
            if self.about():
                cause += f" ({self.about()}): set a larger share for it, or give more data"
            raise DataError(self.origin, f"the split '{self.name}' has no examples{cause}")

    def after_mutators(self, read: Source) -> Iterator[Episode]:
        """Apply the mutators to the episodes of the source, and return an iterator over the
        results. Leave out episodes that become empty, and the candidates of each message if all
        examples share fixed ones.

        read (Source): Reads the episodes (see ``source_episodes``).
        """
        for mutator in self.mutators:
            read = partial(mutated, mutator, read, self.name, self.origin)
        episodes = filter(None, read())
        has_candidates = self.fixed_candidates is not None
        return map(self._without_candidates, episodes) if has_candidates else episodes

    def bare(self) -> "Split":
        """Return a copy without the data, to be read in another process. The state of the mutators
        is not needed there."""
        self.fixed_candidates  # noqa: B018  # Read the candidates here, once.
        bare = copy.copy(self)
        bare._store = bare._lengths = bare._replies = bare.readers = bare.built_store = None
        bare.beginning = bare.encoding = None
        bare.source, bare.mutators = copy.copy(self.source), [copy.copy(m) for m in self.mutators]
        return bare

    def section(self, number: int, n: int) -> Optional["Split"]:
        """Return one of n sections of a stream, so that each process can read its own section;
        None if the stream cannot be read in sections.

        number (int): Number of the section, from 0.
        """
        source: Any = self.source
        if not self.streaming or not are_apart(self) or getattr(source, "size", n) < n:
            return None
        section = copy.copy(self)
        section.source, section.beginning = source.section(number, n), None
        section._lengths, section.is_short = None, False
        section.may_be_empty = True
        return section

    @cached_property
    def fixed_candidates(self) -> Optional[List[str]]:
        """The list of candidates that all examples share, if there is one."""
        return None if self.candidates is None else self.candidates()

    @cached_property
    def _allowed(self) -> FrozenSet[str]:
        return frozenset(self.fixed_candidates or ())

    def store(self) -> Store:
        """Return a store of all episodes. They are read at the first call."""
        if self._store is None:
            with collection_paused():
                (whole,) = blocks.streamed_blocks(self, self._readers, None, BEGIN, NO_END)
                whole.store.is_held = True
                if whole.store.n_examples >= MANY:
                    gc.freeze()  # ``Experiment.working`` unfreezes them.
            self._store = whole.store
        return self._store

    @property
    def is_single_turn(self) -> bool:
        """Whether every episode has one turn (for a stream: whether this is declared)."""
        if self.streaming:
            return self._single_turn
        return self.store().is_single_turn

    def lengths(self) -> np.ndarray:
        """Return the number of turns of each episode, int64; a stream is read once for this."""
        if self._lengths is None:
            if self.streaming:
                starts = (np.asarray(block.store.starts) for block in self._streamed_blocks())
                self._lengths = _joined(np.diff(of_block) for of_block in starts)
            elif self.store().is_single_turn:
                # A broadcast array takes no memory, whatever its length.
                self._lengths = np.broadcast_to(np.int64(1), self.store().n_episodes)
            else:
                self._lengths = np.diff(np.asarray(self.store().starts))
        return self._lengths

    @property
    def is_counted(self) -> bool:
        """Whether the number of episodes is known without reading a stream."""
        return not self.streaming or self._lengths is not None

    def replies(self) -> Sequence[str]:
        """Return the first label of each example; a stream is read once for this."""
        if self._replies is None:
            streamed = (block.store for block in self._streamed_blocks())
            replies: List[str] = []
            lengths: List[np.ndarray] = []
            for store in streamed if self.streaming else [self.store()]:
                replies += (answers[0] for answers in store.all_cells("labels") if answers)
                lengths.append(np.diff(np.asarray(store.starts)))
            self._replies = replies
            if self.streaming:
                self._lengths = _joined(lengths)
        return self._replies

    def blocks(
        self,
        picked: Optional[np.ndarray],
        start: Optional[Start] = None,
        is_encoded: bool = False,
    ) -> Iterator[Block]:
        """Yield the episodes in file order, in blocks of ``window`` episodes; if ``window`` is 0,
        in blocks of ``SHARD_SIZE`` episodes.

        picked (Optional[np.ndarray]): Numbers of the episodes to use, ascending; None for all.
        start (Optional[Start]): Start of the first block to yield in a stream; None for the
            beginning.
        is_encoded (bool): Whether a stream of single turns is tokenized as it is read (see
            ``encoding``). Tokens are of use only for whole batches of an agent.
        """
        if not self.streaming:
            return self._held_blocks(picked)
        is_used = is_encoded and picked is None and self.is_single_turn
        encoding = self.encoding() if is_used and self.encoding is not None else None
        return self._streamed_blocks(picked, start or BEGIN, encoding)

    def texts(self, n_blocks: Optional[int] = None) -> Iterator[str]:
        """Yield every text and label once, in file order.

        n_blocks (Optional[int]): Number of blocks of a stream to read; None for all.
        """
        streamed = (block.store for block in islice(self._streamed_blocks(), n_blocks))
        return self.texts_of(streamed if self.streaming else [self.store()])

    def texts_of(self, stores: Iterable[Store]) -> Iterator[str]:
        """Yield every text and label of stores that together have all episodes."""
        use_text, use_labels, use_system = (
            name in self.text_fields for name in ("text", "labels", "system")
        )
        before = None
        for store in stores:
            columns = (store.all_cells(name) for name in ("text", "labels", "system"))
            for text, answers, system in zip(*columns):
                if use_system and system is not None and system != before:
                    yield system
                before = system
                if use_text and text is not None:
                    yield text
                if use_labels and answers:
                    yield from answers

    def _held_blocks(self, picked: Optional[np.ndarray]) -> Iterator[Block]:
        store = self.store()
        n = store.n_episodes if picked is None else len(picked)
        for number, first in enumerate(range(0, n, self.block_size)):
            members = slice(first, min(first + self.block_size, n))
            order = np.arange(members.start, members.stop) if picked is None else picked[members]
            yield Block(store, order, number)

    def _streamed_blocks(
        self,
        picked: Optional[np.ndarray] = None,
        start: Start = BEGIN,
        encoding: Optional[Encoding] = None,
    ) -> Iterator[Block]:
        found: Iterator[Block] = blocks.streamed_blocks(
            self, self._readers, picked, start, self.block_size, encoding
        )
        if picked is not None or start != BEGIN:
            return found
        if self.listener is not None:
            found = self._with_listener(found)
        return self._keeping_beginning(found) if self.beginning is None else found

    def _with_listener(self, blocks: Iterator[Block]) -> Iterator[Block]:
        tell, self.listener = self.listener, None
        assert tell is not None
        for block in blocks:
            tell(self, block.store)
            yield block
        tell(self, None)

    def _keeping_beginning(self, blocks: Iterator[Block]) -> Iterator[Block]:
        beginning, n_read = MemoryStore(), 0
        try:
            for block in blocks:
                store: Any = block.store
                n = min(BEGINNING - beginning.n_episodes, store.n_episodes)
                if n:
                    beginning.extend(store, np.arange(n))
                n_read += len(block.order)
                yield block
            self.is_short = beginning.n_episodes == n_read > 0
        finally:  # Also if the rest of the stream is not read.
            n_known = 0 if self.beginning is None else self.beginning.n_episodes
            if beginning.n_episodes > n_known:
                self.beginning = beginning

    @property
    def block_size(self) -> int:
        """Maximum number of episodes of a block."""
        return self.window or SHARD_SIZE

    def block(self, store: MemoryStore, start: Start, end: Start) -> Block:
        """Make a block of a stream from its episodes, which keep their order.

        store (MemoryStore): The episodes of the block.
        start, end (Start): Where to start reading to get the episodes of the block, and to get
            the episodes after them.
        RAISES (DataError): If two of its examples have the same id, or if an episode has several
            turns in a stream declared as single-turn.
        """
        if self.streaming and self._single_turn and not store.is_single_turn:
            name = store.message(store.starts[int((np.diff(store.starts) > 1).argmax())])["id"]
            text = f"{short(name)} should be a single turn, but has more"
            raise DataError(self.origin, text)
        if self.fixed_candidates is not None:  # All examples share them.
            store.fill("label_candidates", self.fixed_candidates)
        self.compare_labels(store)
        self.check_ids(store)
        return Block(store, np.arange(store.n_episodes), start["part"], start, end)

    def check_ids(self, store: Store) -> None:
        """Check that no two examples of a store have the same id, unless bad data is only
        collected.

        RAISES (DataError): If two have the same id. The data is read again, to name both places.
        """
        # Compare hashes, which take less memory than the ids.
        hashes = np.fromiter(map(hash, store.all_cells("id")), np.int64, store.n_examples)
        hashes.sort()  # Sorting is ten times as fast as np.unique.
        repeated = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        if not repeated or tolerance().bad_data is not None:
            return
        ids = Counter(name for name in store.all_cells("id") if hash(name) in repeated)
        ((name, n_times),) = ids.most_common(1)
        if n_times == 1:  # Different ids have the same hash.
            return
        at = Bookmark()
        reads = self.source_episodes(at if hasattr(self.source, "read_from") else None)
        places = [
            (str(at.path or self.origin), at.end or None, number)
            for number, episode in enumerate(reads)
            for message in episode
            if message["id"] == name
        ]
        hint = "give each example a unique id"
        if len(places) < 2:  # A mutator duplicated the id.
            raise DataError(self.origin, f"two examples have the id {short(name)}: {hint}")
        (_, before, first), (path, line, number), *_ = places
        text = f"episode {number}" if before is None else "this line"
        other = f"episode {first}" if before is None else f"line {before}"
        raise DataError(path, f"{text} has the same id as {other}, {short(name)}: {hint}", line)

    def compare_labels(self, store: Store) -> None:
        """Check that no labels that are classes differ only by case or blanks. This is only done
        for a source that does not check its labels itself, and for a built store, which may have
        been built for an agent without classes.

        RAISES (DataError): If two labels differ only by case or blanks.
        """
        classes = tolerance().classes
        if classes is None:
            return
        labelled: Iterable[Tuple[str, Sequence[str]]] = ()
        if isinstance(store, MappedStore):  # There may be too many rows to read them all.
            labelled = (("", [label]) for label in store.label_texts)
        elif not getattr(self.source, "compares_labels", False):
            labelled = zip(store.all_cells("id"), store.all_cells("labels"))
        for name, labels in labelled:
            for label in labels or ():
                if label not in classes.known:
                    classes.add(label, Place(self.origin, None, f"example {name}" if name else ""))

    def shards(self, start: Optional[Start] = None) -> Generator[Block, None, None]:
        """Yield the episodes of the source in blocks of ``SHARD_SIZE``, to be stored.

        start (Optional[Start]): Where to begin; None for the first episode.
        """
        return blocks.streamed_blocks(self, self._readers, None, start or BEGIN, SHARD_SIZE)

    @property
    def _readers(self) -> Optional[Readers]:
        """Processes that read; None if only this process reads, for example to collect bad data."""
        is_store = isinstance(self.source, Store)
        return None if is_store or tolerance().bad_data is not None else self.readers

    def source_episodes(self, at: Optional[Bookmark]) -> Iterator[Episode]:
        """Yield the episodes of the source, before the mutators.

        at (Optional[Bookmark]): Where to start; moved along while reading. None to start at the
            beginning.
        """
        if isinstance(self.source, Store):
            yield from _episodes_of(self.source)
            return
        episodes = self.source() if at is None else self.source.read_from(at)
        if is_users(self._given):
            episodes = self._checked_custom(episodes)
        for number, episode in enumerate(episodes):
            for turn, message in enumerate(episode):
                if "id" not in message:
                    message["id"] = f"{number}/{turn}"
                if "eval_labels" in message:  # The split determines their use.
                    message.setdefault("labels", message["eval_labels"])
                    del message["eval_labels"]
                if "episode_done" in message:  # The order sets it.
                    del message["episode_done"]
            yield episode

    def _checked_custom(self, episodes: Any) -> Iterator[Episode]:
        """Check the type of episodes from custom code, and yield them."""
        wanted = f"episodes: lists of Messages {FIELDS}"
        if not isinstance(episodes, Iterable):
            raise wrong_value(self._given, episodes, wanted)
        for number, episode in enumerate(episodes):
            if not number % N_BETWEEN:  # Python's own collector is paused while data is read.
                gc.collect(0)
            is_good = isinstance(episode, list) and all(map(is_message, episode))
            if not is_good:
                raise wrong_value(self._given, episode, f"{wanted}; this is one of them")
            # The code may use the same objects for the next episode.
            yield list(map(Message, episode))

    def _without_candidates(self, episode: Episode) -> Episode:
        for message in episode:
            for label in message.get("labels") or ():
                if label not in self._allowed and not tolerance().outside_labels:
                    n = len(self.fixed_candidates or ())
                    text = (
                        f"the label {short(label)} of example {short(message['id'])} is not "
                        f"among the {n} fixed candidates: add it to the file of candidates"
                    )
                    raise DataError(self.origin, text)
            message.pop("label_candidates", None)
        return episode


def _joined(lengths: Iterable[np.ndarray]) -> np.ndarray:
    """Join the lengths of all blocks; a section of a stream may have none."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *lengths])


def _episodes_of(store: Store) -> Iterator[Episode]:
    starts = store.starts
    for number in range(store.n_episodes):
        yield [store.message(row) for row in range(starts[number], starts[number + 1])]


def _keep_single(mutators: Sequence[Any], is_single: bool) -> bool:
    """Return whether episodes are declared to have one turn after the mutators. A mutator that
    declares nothing is assumed to change turns but not to add any."""
    return is_single or any(getattr(mutator, "single_turn", False) for mutator in mutators)
