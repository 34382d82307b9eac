"""The base class of all teachers, agents whose acts come from data."""

import copy
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, TypeVar, Union

from ..batchers import Batcher, count_words
from ..contract import Returned, is_kind
from ..errors import DataError, ProtocolError
from ..examples.batch import Batch
from ..examples.encoded import Encoding
from ..examples.mixture import AnyOrder
from ..examples.mutating import Source
from ..examples.order import NOTHING, Order, Place, as_shown
from ..examples.reading import Readers
from ..examples.sharded import ByNumber, ByPart
from ..examples.split import Split
from ..examples.store import Store
from ..examples.windows import Measure, Windows
from ..formats.wording import nearest
from ..messages import Message
from ..metrics.example_metric import ExampleMetric
from ..metrics.metric import Metric
from ..protocol import Agent
from ..registry import registry
from .scores import Scores

# Mutators as a list, or as a mapping from the names of a config's sections.
Mutators = Union[None, Sequence[Any], Mapping[str, Any]]

TeacherT = TypeVar("TeacherT", bound="Teacher")

# Marks that no agent has replied yet.
_NOBODY = object()


def mutator_list(mutators: Mutators) -> List[Callable]:
    """Return mutators in order, from a list, or from the config's sections
    `[tasks.x.mutators.name]` or `[tasks.x.mutators.*.name]`."""
    if not isinstance(mutators, Mapping):
        return list(mutators or ())
    return [step for key, value in mutators.items() for step in (value if key == "*" else [value])]


class Teacher(Agent):
    """Show the examples of a split, each exactly once per epoch, and score replies.

    A teacher knows its splits; ``for_split`` returns a teacher that acts on one. Copies
    (``clone``) share its position in the epoch and its scores: each takes the next episode when
    its own has ended, so that together they show every example once. ``epoch_done`` of a copy can
    change when another copy acts, so call it directly before ``act``.

    Evaluation keeps the order of the data. Training cuts the episodes, in that order, into
    blocks of ``shuffle_window`` and permutes each block by (seed, epoch, block): the same
    examples in the same order, streaming or in memory.

    sources (Dict[str, Union[Source, ByNumber, ByPart, Store]]): Split name to a source. A source
        is a function that returns the split's episodes: lists of messages with `text` (may be ""
        if there are `features`) and `labels`. It returns the same episodes at each call, in new
        ``Message`` objects, which the teacher changes. A message without `id` gets
        `<number of its episode>/<turn>`. A source that can start anywhere has a method
        `read_from` (see ``FileSource``). A source can also provide episodes by number (`__len__`
        and `__getitem__`) or by part (`n_parts` and `read_part`), so that several processes can
        read it; or it can be a store that holds the episodes (see ``examples.Store``).
    candidates (Optional[Callable]): Returns one list of candidates for all messages.
    mutators (Mutators): Mutators to apply in order while the data is read (see
        ``mutators.mutator``).
    streaming (bool): Read the data for every epoch instead of holding it in memory. A run that is
        resumed reads files from its position on (see ``restore``).
    single_turn (bool): Whether all episodes are known to have a single turn before mutators;
        for data in memory, this is detected.
    shuffle_window (int): Episodes in a block, 1 or more; a stream holds one block in memory.
    origin (str): Description of the data for error messages; the task's name if "".
    text_fields (Sequence[str]): Those of `text`, `labels` and `system` that together hold every
        text once; a `system` that stays the same from row to row is one text.
    endless (bool): In training, show the data again, in another order, whenever it ends, so that
        an epoch never ends. Such data is streamed, so it may itself be endless.

    data (Dict[str, Split]): Split name to its data. All copies share this dict.
    order (Order): The episodes of the split that this teacher shows.
    """

    returns = {
        **{name: returned for name, returned in Agent.returns.items() if name != "batch_act"},
        "batch_act": Returned("a Batch", is_kind(Batch)),
    }

    def __init__(
        self,
        sources: Mapping[str, Union[Source, ByNumber, ByPart, Store]],
        *,
        candidates: Optional[Callable[[], List[str]]] = None,
        mutators: Mutators = None,
        streaming: bool = False,
        single_turn: bool = False,
        shuffle_window: int = 65536,
        origin: str = "",
        text_fields: Sequence[str] = ("text", "labels"),
        endless: bool = False,
    ):
        if shuffle_window < 1:
            raise ValueError(f"shuffle_window = {shuffle_window}, expected 1 or more episodes")
        self.id = "task"  # The name of the task.
        self.split = ""
        self.training = False
        self.origin = origin
        options: Dict[str, Any] = {
            "mutators": mutator_list(mutators),
            "candidates": candidates,
            "streaming": streaming or endless,
            "single_turn": single_turn,
            "window": shuffle_window,
            "origin": origin or self.id,
            "text_fields": text_fields,
            "endless": endless,
        }
        self.data = {name: Split(name, source, **options) for name, source in sources.items()}
        self._show(None, Scores())

    def _show(self, order: Optional[AnyOrder], scores: Scores) -> None:
        """Set the order of the episodes to show, and the scores to fill."""
        self._epoch_order, self._scores = order, scores
        self._windows: Optional[Windows] = None
        self.reset()

    def reset(self) -> None:
        """Drop this copy's episode, if it is in the middle of one."""
        self._run: Optional[object] = None  # The epoch that the episode belongs to.
        self._block = NOTHING
        # Its next row in the block's store, and the row after its last.
        self._row = self._end = 0
        self._waits = False  # Whether its last act waits for a reply.
        self._labels: Optional[Sequence[str]] = None  # Labels of the last act.
        self._answered_by: Any = _NOBODY
        self._batch: Optional[Batch] = None  # A batch that waits for replies.

    # --- splits -------------------------------------------------------------------------

    @property
    def splits(self) -> List[str]:
        """Names of the splits that have data."""
        return list(self.data)

    def set_name(self, name: str) -> None:
        """Set the name of the task, for error messages."""
        self.id = name
        for split in self.data.values():
            if hasattr(split.source, "task"):
                split.source.task = name

    def check_sources(self) -> None:
        """Check that the files of all splits exist, before any of them is read.

        RAISES (DataError): If a file cannot be read.
        """
        for split in self.data.values():
            split.check_source()

    def files(self, split: str) -> List[str]:
        """Return the data files of a split in order, then its layout file and its file of fixed
        candidates; none if the split is not read from files."""
        return self.data[split].files()

    def read_with(
        self, readers: Optional[Readers], encoding: Callable[[], Optional[Encoding]] = lambda: None
    ) -> None:
        """Set how the data is read from now on.

        readers (Optional[Readers]): Lets other processes read (see ``loader.Readers``); None to
            read in this process only.
        encoding (Callable): Called when an epoch of a stream begins; returns the encoding with
            which tokens are made for an agent as single turns are read, or None.
        """
        for split in self.data.values():
            split.readers, split.encoding = readers, encoding

    def set_shuffle_window(self, n_episodes: int, is_stored: bool = False) -> None:
        """Set the number of episodes that are shuffled together.

        n_episodes (int): 1 or more; 0 for all, if the data is in memory.
        is_stored (bool): Whether a store will replace streams.
        RAISES (ConfigError): If a whole stream would be shuffled.
        """
        for split in self.data.values():
            split.set_window(n_episodes, is_stored)

    def for_split(
        self,
        split: str,
        *,
        training: bool = False,
        max_examples: int = 0,
        n_candidates: int = 0,
        seed: int = 0,
    ) -> "Teacher":
        """Return a teacher that acts on one split. Data in memory is read once, on first use, and
        shared by all teachers of the split.

        split (str): One of ``splits``.
        training (bool): Whether messages are shuffled and have `labels`. Otherwise, they are in the
            order of the data and have `eval_labels`.
        max_examples (int): Number of examples in a seeded sample to use (whole episodes, until
            they have this number); 0 for all examples.
        n_candidates (int): In evaluation, give each example without candidates this many
            distinct `label_candidates`: its first label and other replies of the split, drawn
            by (seed, example id); 0 for none.
        seed (int): Seed of the sample, of the candidates, and of the first epoch.
        RAISES (DataError): If there is no such split.
        """
        if split not in self.data:
            have = ", ".join(self.data) or "none"
            text = f"there is no split '{split}'{nearest(split, self.splits)} (found: {have})"
            raise DataError(self.origin or self.id, f"{text}; give the path of its data")
        teacher = copy.copy(self)
        teacher.split, teacher.training = split, training
        n_drawn = 0 if training else n_candidates
        order = Order(self.data[split], training, max_examples, n_drawn, seed)
        if order.is_endless and max_examples:
            text = "never ends, so no sample can be drawn: leave max_examples at 0"
            raise DataError(order.origin, text)
        teacher._show(order, Scores(training=training))
        return teacher

    def shares(self: TeacherT, n_workers: int) -> List[TeacherT]:
        """Return a share (see ``share_of``) for each of several threads. A stream is read once, by
        all threads together.

        n_workers (int): Number of threads.
        """
        return list(map(self._share, self.order.shares(n_workers)))

    def share_of(
        self: TeacherT, worker: int, n_workers: int, reads_apart: bool = False
    ) -> TeacherT:
        """Return a share of the data for one of n workers. Each share has an n-th of the episodes
        (of each task), the same ones in every epoch, so that the workers together show every
        example once. A share has its own position, scores and batches, but reports the size of the
        whole data.

        worker (int): Number of the worker, from 0.
        n_workers (int): Number of workers.
        reads_apart (bool): Whether each worker reads on its own. If a stream can be read in
            sections, the share is then one section, and the worker reads nothing else.
        """
        return self._share(self.order.share_of(worker, n_workers, reads_apart))

    def _share(self: TeacherT, order: AnyOrder) -> TeacherT:
        share = copy.copy(self)
        share._show(order, self._scores.fresh())
        return share

    def by_task(self) -> Dict[str, "Teacher"]:
        """Return the teacher of each task by name; {"": this teacher} for one task."""
        return {"": self}

    # --- acting, turn by turn -------------------------------------------------------------

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin an epoch for all copies; the rest of the previous epoch is dropped.

        epoch (int): Number of the epoch, from 0. Together with the seed, it determines the order
            in training.
        seed (int): Seed of the run.
        """
        self.order.start(epoch, seed)
        self.reset()

    def epoch_done(self) -> bool:
        """Return whether nothing is left for this copy to show."""
        order = self.order
        if self._row < self._end and self._run is order.run:
            return False
        if self._windows is not None and self._windows.has_left(order.run):
            return False
        return order.is_exhausted()

    def act(self) -> Message:
        """Return the next turn of this copy's episode, or the first turn of a new one.

        RAISES (ProtocolError): If the last turn has not been answered, or the epoch
            is done.
        """
        order = self.order
        if self._run is not order.run:
            self.reset()
        if self._waits:
            raise self._unanswered("act", "observe")
        row = self._row
        if row >= self._end:
            if order.is_exhausted():
                raise self._past_end("act")
            self._block, episode = order.take_one()
            self._run = order.run
            starts = self._block.store.starts
            row, self._end = int(starts[episode]), int(starts[episode + 1])
        self._row = row + 1
        message = self._block.store.message(row)
        self._waits, self._labels = True, message.get("labels")
        return as_shown(message, order.training, self._row == self._end)

    def observe(self, message: Message) -> Message:
        """Score the reply to the last act. Replies of further agents to the same act
        are not scored.

        RAISES (ProtocolError): If there was no act, or if the same agent has already
            replied to it.
        """
        speaker = message.get("agent")
        if self._waits:
            self._scores.add(self._labels, message, self._block.task)
            self._waits = False
            self._answered_by = speaker
        elif self._answered_by is _NOBODY or speaker == self._answered_by:
            raise ProtocolError(
                f"{self.id}.observe() was called without an act() to reply to: call act() first."
            )
        return message

    # --- acting, batch by batch -----------------------------------------------------------

    @property
    def is_single_turn(self) -> bool:
        """Whether all episodes have one turn, so that ``batch_act`` works."""
        return self.order.is_single_turn

    def set_batches(self, batcher: Batcher, measure: Measure = count_words) -> None:
        """Set the batcher to use from now on; steps of schedules are counted from 0.

        batcher (Batcher): Chooses the rows of each batch.
        measure (Measure): Returns the lengths of the rows of a ``Batch``; called only
            if the batcher needs lengths.
        RAISES (ProtocolError): If episodes have several turns.
        """
        if not self.is_single_turn:
            text = "needs episodes of a single turn: use clones, or flatten the episodes."
            raise ProtocolError(f"{self.id}.set_batches() {text}")
        self._windows = Windows(batcher, measure)

    def batch_act(self) -> Batch:  # type: ignore[override]
        """Return the next batch of examples.

        Rows that the batcher shortens (its oversize is "truncate") have ``max_tokens``: the
        number of tokens to read of the context and of the label.

        RAISES (ProtocolError): If the last batch has not been answered, the epoch is
            done, or ``set_batches`` was not called.
        RAISES (DataError): If an example is larger than a batch, and the batcher treats this as
            an error.
        """
        order = self.order
        if self._run is not order.run:
            self.reset()
        if self._batch is not None:
            raise self._unanswered("batch_act", "batch_observe")
        if self._windows is None:
            text = "was called before set_batches(): set a batcher first."
            raise ProtocolError(f"{self.id}.batch_act() {text}")
        batch = self._windows.next(order)
        if not len(batch.rows):
            raise self._past_end("batch_act")
        self._run, self._batch = order.run, batch
        return batch

    def batch_observe(self, replies: Sequence[Message]) -> None:
        """Score the replies to the last ``batch_act``, in its order.

        RAISES (ProtocolError): If there was no batch_act, or not one reply for each row.
        """
        batch = self._batch
        if batch is None:
            raise ProtocolError(f"{self.id}.batch_observe() was called without a batch_act().")
        if len(replies) != len(batch.rows):
            text = f"got {len(replies)} replies to {len(batch.rows)} rows."
            raise ProtocolError(f"{self.id}.batch_observe() {text}")
        self._scores.add_batch(batch, replies)
        self._batch = None

    # --- resuming from a state ------------------------------------------------------------

    def state(self) -> Dict[str, Any]:
        """Return the position in the epoch, which all copies share, and in this copy's own
        episode, as JSON values; call it between a reply and the next act. After ``restore``, all
        following examples have the same order.

        RAISES (ProtocolError): If an act has not been answered.
        """
        own = self.place()
        if self._windows is not None:
            return {"own": own, **self._windows.state(self.order)}
        return {"own": own, "shown": self.order.state(), "batches": None}

    def place(self) -> Optional[Place]:
        """Return this copy's position in its episode, as JSON values; None between episodes.

        RAISES (ProtocolError): If its act has not been answered.
        """
        if self._waits or self._batch is not None:
            call = "act" if self._batch is None else "batch_act"
            raise ProtocolError(f"{self.id}: give the reply to {call}() before saving the state.")
        if self._row >= self._end or self._run is not self.order.run:
            return None
        return self.order.place(self._block, self._row, self._end)

    def place_of_act(self) -> Optional[Place]:
        """Return this copy's position before the act that waits for a reply: a copy restored to
        it repeats the act. None if no act waits."""
        if not self._waits or self._run is not self.order.run:
            return None
        return self.order.place(self._block, self._row - 1, self._end)

    def restore(
        self: TeacherT, state: Mapping[str, Any], places: Sequence[Optional[Place]] = ()
    ) -> List[TeacherT]:
        """Move to the position in a ``state``. If the state was made with a batcher, set the
        batcher first. A stream is read from the block of episodes of the position on: lines of
        files before this block are skipped. Other data is read again from its beginning, and so is
        all data that a mutator must see completely.

        state (Mapping[str, Any]): From ``state``.
        places (Sequence[Optional[Place]]): Positions of the copies, each from its ``place``.
        RETURNS (List[Teacher]): New copies, one at each of the positions.
        RAISES (DataError): If the data has no such position.
        """
        order = self.order
        copies = [self, *(self.clone() for _ in places)]
        moved = [(each, place) for each, place in zip(copies, [state["own"], *places]) if place]
        blocks = order.restore(state["shown"], [place for _, place in moved])
        self.reset()
        for (each, place), block in zip(moved, blocks):
            each._run, each._block = order.run, block
            each._row, each._end = place["row"], place["end"]
        if self._windows is not None and state["batches"] is not None:
            self._windows.restore(state["batches"], order.run)
        return copies[1:]

    # --- the data as it is ----------------------------------------------------------------

    def texts(self) -> Iterator[str]:
        """Yield every text and label of the whole split once, in the order of the data; for
        endless data, only of the first ``shuffle_window`` episodes. The following methods treat
        endless data in the same way."""
        return self.order.texts()

    def episodes(self) -> Iterator[List[Message]]:
        """Yield every episode in the order of the data, as it would be shown."""
        return self.order.episodes()

    def examples(self) -> Iterator[Message]:
        """Yield every example in the order of the data, flattened: a turn within an episode
        carries the turns before it as `context`."""
        return self.order.examples()

    def all_labels(self) -> Iterator[str]:
        """Yield every label of the same examples."""
        return self.order.all_labels()

    @property
    def n_episodes(self) -> Optional[int]:
        """Number of episodes of an epoch; None if endless, or a stream not counted yet."""
        return self.order.n_episodes

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples of an epoch; None if endless, or a stream not counted yet."""
        return self.order.n_examples

    # --- scores ---------------------------------------------------------------------------

    def set_metrics(self, metrics: Sequence[ExampleMetric]) -> None:
        """Set the metrics that score replies (they are filled in place); the default is accuracy
        and F1. In training, replies without a text are not scored."""
        self._scores.set_metrics(metrics)

    def report(self) -> Dict[str, Metric]:
        """Return `examples` and the metrics, of all copies together."""
        return self._scores.report()

    def reset_metrics(self) -> None:
        """Reset the scores of all copies."""
        self._scores.reset()

    @property
    def order(self) -> AnyOrder:
        if self._epoch_order is None:
            raise ProtocolError(f"{self.id} shows no split yet: call for_split() first.")
        return self._epoch_order

    def _unanswered(self, call: str, missing: str) -> ProtocolError:
        return ProtocolError(
            f"{self.id}.{call}() was called twice: call {missing}() with the reply in between."
        )

    def _past_end(self, call: str) -> ProtocolError:
        return ProtocolError(
            f"{self.id}.{call}() was called past the end of the epoch: check epoch_done() first, "
            "and call start_epoch() to continue."
        )


registry.teachers.makes(Teacher)
