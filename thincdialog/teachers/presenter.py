"""What teachers do with what they show: say it turn by turn or in batches, and score."""

import copy
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, TypeVar, Union

from ..batchers import Batcher, count_words
from ..errors import ProtocolError
from ..messages import Message, MessageBatch
from ..metrics.example_metric import ExampleMetric
from ..metrics.metric import Metric
from ..protocol import Agent
from .batches import Batches, Measure
from .cursor import NOTHING, Block
from .mixture import Mixture
from .scores import Scores
from .showing import Place, Showing

PresenterT = TypeVar("PresenterT", bound="Presenter")

# Whom a teacher that never acted would take a reply from.
_NOBODY = object()


class Presenter(Agent):
    """The acts of a ``Teacher`` (see there), whatever it shows.

    showing (Union[None, Showing, Mixture]): What to show; None for nothing yet.
    scores (Scores): What replies are counted in.
    """

    _run: Optional[object]  # The epoch that the episode belongs to.
    _block: Block
    _turn: int
    _end: int
    _labels: Optional[Sequence[str]]  # Of the act that waits for a reply.
    _answered_by: Any
    _batch_labels: Optional[Sequence[Any]]
    _batch_tasks: Sequence[int]

    def __init__(self, showing: Union[None, Showing, Mixture], scores: Scores):
        self._showing = showing
        self._scores = scores
        self._batches: Optional[Batches] = None
        self.reset()

    def share_of(self: PresenterT, worker: int, n_workers: int) -> PresenterT:
        """The same data for one of several workers that show it together: each has an n-th
        of the episodes (of each task's), the same in every epoch, so that all of them together
        show every example once, and none if there are too few. A share has its own place
        in the epoch and its own scores and batches; it tells the size of the whole.

        worker (int): Number of the worker, from 0.
        n_workers (int): How many share.
        """
        share = copy.copy(self)
        showing = self._shown.share_of(worker, n_workers)
        Presenter.__init__(share, showing, self._scores.fresh())
        return share

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Begin an epoch, for all copies; what was left of the one before is dropped.

        epoch (int): Counted from 0; decides, with the seed, on the training order.
        seed (int): The run's seed.
        """
        self._shown.cursor.start(epoch, seed)
        self.reset()

    def epoch_done(self) -> bool:
        """Whether nothing is left for this copy to show."""
        cursor = self._shown.cursor
        if self._turn < self._end and self._run is cursor.run:
            return False
        return cursor.is_exhausted() and not (self._batches and self._batches.has_left(cursor.run))

    def act(self) -> Message:
        """The next turn of this copy's episode, or the first of a new one.

        RAISES (ProtocolError): If the last turn has not been answered, or the epoch
            is done.
        """
        showing = self._shown
        cursor = showing.cursor
        if self._run is not cursor.run:
            self.reset()
        if self._labels is not None:
            raise self._unanswered("act")
        turn = self._turn
        if turn >= self._end:
            if cursor.is_exhausted():
                raise self._past_end("act")
            self._block, (episode,) = cursor.take(1)
            self._run = cursor.run
            starts = self._block.store.starts
            turn, self._end = starts[episode], starts[episode + 1]
        self._turn = turn + 1
        message = showing.message(self._block, turn, turn + 1 == self._end)
        self._labels = message.get(showing.label_name, ())
        return message

    def observe(self, message: Message) -> Message:
        """Score the reply to the last act. Replies of further agents to the same act
        are not scored.

        RAISES (ProtocolError): If there was no act, or the same agent replied to it
            already.
        """
        speaker = message.get("agent")
        if self._labels is not None:
            self._scores.add(self._labels, message, self._block.task)
            self._labels = None
            self._answered_by = speaker
        elif self._answered_by is _NOBODY or speaker == self._answered_by:
            raise ProtocolError(
                f"{self.id}.observe() was called without an act() to reply to: call act() first."
            )
        return message

    @property
    def is_single_turn(self) -> bool:
        """Whether all episodes have one turn, so that ``batch_act`` works."""
        return self._shown.is_single_turn

    def set_batches(self, batcher: Batcher, measure: Measure = count_words) -> None:
        """Hand out such batches from now on; steps of schedules are counted from 0.

        batcher (Batcher): How many rows go together, and which.
        measure (Measure): Tells what the rows of a ``MessageBatch`` take up; asked only
            if the batcher looks at lengths.
        """
        self._batches = Batches(batcher, measure)

    def batch_act(self) -> MessageBatch:
        """The next batch of examples, in columns; only if ``is_single_turn``.

        Rows that the batcher shortens (its oversize is "truncate") have a field
        `max_tokens`: how much to read of the context and of the label.

        RAISES (ProtocolError): If the last batch has not been answered, the epoch is
            done, episodes have several turns, or ``set_batches`` was not called.
        RAISES (DataError): If an example is larger than a batch, and this is an error.
        """
        showing = self._shown
        if self._run is not showing.cursor.run:
            self.reset()
        if self._batch_labels is not None:
            raise self._unanswered("batch_act")
        if self._batches is None:
            text = "was called before set_batches(): say which batches."
            raise ProtocolError(f"{self.id}.batch_act() {text}")
        if not showing.is_single_turn:
            text = "needs episodes of a single turn: use copies, or flatten them."
            raise ProtocolError(f"{self.id}.batch_act() {text}")
        columns, n_rows, self._batch_tasks = self._batches.next(showing)
        if not n_rows:
            raise self._past_end("batch_act")
        self._run = showing.cursor.run
        self._batch_labels = columns.get(showing.label_name) or [None] * n_rows
        return MessageBatch(columns, n_rows)

    def batch_observe(self, replies: Sequence[Message]) -> None:
        """Score the replies to the last ``batch_act``, in its order.

        RAISES (ProtocolError): If there was no batch_act, or not one reply for each row.
        """
        labels = self._batch_labels
        if labels is None:
            raise ProtocolError(f"{self.id}.batch_observe() was called without a batch_act().")
        if len(replies) != len(labels):
            text = f"got {len(replies)} replies to {len(labels)} rows."
            raise ProtocolError(f"{self.id}.batch_observe() {text}")
        self._scores.add_batch(labels, replies, self._batch_tasks)
        self._batch_labels = None

    def state(self) -> Dict[str, Any]:
        """The place in the epoch that all copies share, and in this one's own episode,
        as JSON values; to be asked between a reply and the next act. ``restore`` goes
        back there, and all that follows comes in the same order.

        RAISES (ProtocolError): If an act has not been answered.
        """
        own = self.place()
        if self._batches is not None:
            return {"own": own, **self._batches.state(self._shown)}
        return {"own": own, "shown": self._shown.cursor.state(), "batches": None}

    def place(self) -> Optional[Place]:
        """Where this copy is in its episode, as JSON values; None between episodes.

        RAISES (ProtocolError): If its act has not been answered.
        """
        if self._labels is not None or self._batch_labels is not None:
            call = "act" if self._batch_labels is None else "batch_act"
            raise ProtocolError(f"{self.id}: the reply to {call}() must come before the state.")
        if self._turn >= self._end or self._run is not self._shown.cursor.run:
            return None
        return self._shown.place(self._block, self._turn, self._end)

    def place_of_act(self) -> Optional[Place]:
        """Where this copy was before the act that waits for a reply: one brought there
        says the same again. None if none waits."""
        if self._labels is None or self._run is not self._shown.cursor.run:
            return None
        return self._shown.place(self._block, self._turn - 1, self._end)

    def restore(
        self: PresenterT, state: Mapping[str, Any], places: Sequence[Optional[Place]] = ()
    ) -> List[PresenterT]:
        """Go back to where ``state`` was taken; its batcher, if any, is to be set before.
        A stream is read from the block of episodes on that it was in: files are opened
        there (gzip is unpacked up to there); other data is made again up to there, and
        so is what a mutator sees that must see all of it.

        state (Mapping[str, Any]): From ``state``.
        places (Sequence[Optional[Place]]): Where the copies were, each from its ``place``.
        RETURNS (List[Presenter]): New copies, one at each of the places.
        RAISES (DataError): If the data has no such place.
        """
        showing = self._shown
        copies = [self, *(self.clone() for _ in places)]
        moved = [(each, place) for each, place in zip(copies, [state["own"], *places]) if place]
        blocks = showing.restore(state["shown"], [place for _, place in moved])
        self.reset()
        for (each, place), block in zip(moved, blocks):
            each._run = showing.cursor.run
            each._block = block
            each._turn = place["turn"]
            each._end = place["end"]
        if self._batches is not None and state["batches"] is not None:
            self._batches.restore(state["batches"], showing.cursor.run)
        return copies[1:]

    def texts(self) -> Iterator[str]:
        """Every text and label of the whole split once, in the order of the data; of
        endless data, of the first ``shuffle_window`` episodes; so do those below."""
        return self._shown.texts()

    def episodes(self) -> Iterator[List[Message]]:
        """Every episode in the order of the data, as it would be shown."""
        return self._shown.episodes()

    def examples(self) -> Iterator[Message]:
        """Every example in the order of the data, flattened: a turn within an episode
        carries the turns before it as `context`."""
        return self._shown.examples()

    def all_labels(self) -> Iterator[str]:
        """Every label of the same examples; those without labels give none."""
        return self._shown.all_labels()

    @property
    def data_name(self) -> str:
        """What the split is read from, for error messages: its files, or the task."""
        return self._shown.origin

    @property
    def n_episodes(self) -> Optional[int]:
        """Number of episodes of an epoch; None while unknown for a stream, or endless."""
        return self._shown.n_episodes

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples of an epoch; None while unknown for a stream, or endless."""
        return self._shown.n_examples

    @property
    def is_endless(self) -> bool:
        """Whether the epoch never ends."""
        return self._shown.is_endless

    def set_metrics(self, metrics: Sequence[ExampleMetric]) -> None:
        """Score replies by these from now on (they are filled in place)."""
        self._scores.set_metrics(metrics)

    def report(self) -> Dict[str, Metric]:
        """`examples` and the metrics, of all copies together."""
        return self._scores.report()

    def reset_metrics(self) -> None:
        """Start the scores of all copies afresh."""
        self._scores.reset()

    def reset(self) -> None:
        """Drop this copy's episode, if it is in the middle of one."""
        self._run = None
        self._block = NOTHING
        self._turn = 0
        self._end = 0
        self._labels = None
        self._answered_by = _NOBODY
        self._batch_labels = None
        self._batch_tasks = ()

    @property
    def _shown(self) -> Union[Showing, Mixture]:
        if self._showing is None:
            raise ProtocolError(f"{self.id} shows no split yet: call for_split() first.")
        return self._showing

    def _unanswered(self, call: str) -> ProtocolError:
        missing = "batch_observe" if call == "batch_act" else "observe"
        return ProtocolError(
            f"{self.id}.{call}() was called twice: call {missing}() with the reply between."
        )

    def _past_end(self, call: str) -> ProtocolError:
        return ProtocolError(
            f"{self.id}.{call}() was called past the end of the epoch: ask epoch_done() first, "
            "and call start_epoch() to go on."
        )
