"""The base of all teachers: agents whose acts come from data."""

import copy
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from ..errors import DataError, ProtocolError
from ..messages import Message, MessageBatch
from ..metrics.example_metric import ExampleMetric
from ..metrics.metric import Metric
from ..protocol import Agent
from .arguments import Mutators, mutator_list
from .cursor import NOTHING, Block
from .reading import nearest
from .scores import Scores
from .showing import Showing
from .split import Source, Split

# Whom a teacher that never acted would take a reply from.
_NOBODY = object()


class Teacher(Agent):
    """Shows the examples of a split, each exactly once an epoch, and scores replies.

    A teacher knows its splits; ``for_split`` gives one that acts. Copies
    (``clone``) share its place in the epoch and its scores: each takes the next
    episode when its own has ended, so any number of them shows every example once.
    Whether a copy has anything left (``epoch_done``) can change when another acts:
    ask right before its ``act``.

    Evaluation keeps the order of the data. Training cuts the episodes, in that
    order, into blocks of ``shuffle_window`` and permutes each block by (seed, epoch,
    block): the same examples in the same order, streaming or in memory.

    sources (Dict[str, Source]): Split name to a function that gives its episodes:
        lists of messages with `text` (or `features`) and `labels`. It must give the
        same ones at each call, in new ``Message`` objects, which the teacher changes.
        A message without `id` gets `<number of its episode>/<turn>`.
    candidates (Optional[Callable]): Gives one list of candidates for all messages.
    mutators (Mutators): Applied in order at reading (see ``mutators.mutator``).
    streaming (bool): Read the data for every epoch instead of holding it.
    single_turn (bool): Whether all episodes are known to have a single turn before
        mutators; in memory it is found out.
    shuffle_window (int): Episodes in a block, 1 or more; what a stream holds.
    origin (str): What the data is, for error messages; the task's name if "".
    text_fields (Sequence[str]): Of `text` and `labels`, those that together hold
        every text once.
    """

    _run: Optional[object]  # The epoch that the episode belongs to.
    _block: Block
    _turn: int
    _end: int
    _labels: Optional[Sequence[str]]  # Of the act that waits for a reply.
    _answered_by: Any
    _batch_labels: Optional[Sequence[Any]]

    def __init__(
        self,
        sources: Dict[str, Source],
        *,
        candidates: Optional[Callable[[], List[str]]] = None,
        mutators: Mutators = None,
        streaming: bool = False,
        single_turn: bool = False,
        shuffle_window: int = 65536,
        origin: str = "",
        text_fields: Sequence[str] = ("text", "labels"),
    ):
        if shuffle_window < 1:
            raise ValueError(f"shuffle_window = {shuffle_window}, expected 1 or more episodes")
        self.task = "task"
        self.split = ""
        self.training = False
        self.origin = origin
        steps = mutator_list(mutators)
        self._data = {
            name: Split(
                name,
                source,
                mutators=steps,
                candidates=candidates,
                streaming=streaming,
                single_turn=single_turn,
                window=shuffle_window,
                origin=origin or self.task,
                text_fields=text_fields,
            )
            for name, source in sources.items()
        }
        self._showing: Optional[Showing] = None
        self._scores = Scores()
        self.reset()

    @property
    def id(self) -> str:  # type: ignore[override]
        """The task's name."""
        return self.task

    @property
    def splits(self) -> List[str]:
        """Names of the splits that there is data for."""
        return list(self._data)

    def check_sources(self) -> None:
        """See that the files of all splits are there, before any of them is read.

        RAISES (DataError): If one cannot be read.
        """
        for split in self._data.values():
            split.check_source()

    def for_split(
        self,
        split: str,
        *,
        training: bool = False,
        max_examples: int = 0,
        n_candidates: int = 0,
        seed: int = 0,
    ) -> "Teacher":
        """A teacher that acts on one split. Data in memory is read once, on first
        use, and shared by all teachers of the split.

        split (str): One of ``splits``.
        training (bool): Messages with `labels`, shuffled; else `eval_labels`, in order.
        max_examples (int): Use a seeded sample of that many examples (of longer
            episodes: whole ones until there are as many); 0 for all.
        n_candidates (int): In evaluation, give each example without candidates its
            first label and other replies of the split as `label_candidates`, all
            different and this many altogether, drawn by (seed, example id); 0 for none.
        seed (int): Seed of the sample, of the candidates, and of the first epoch.
        RAISES (DataError): If there is no such split.
        """
        if split not in self._data:
            have = ", ".join(self._data) or "none"
            text = f"there is no split '{split}'{nearest(split, self.splits)} (there is: {have})"
            raise DataError(self.origin or self.task, f"{text}; give the path of its data")
        teacher = copy.copy(self)
        teacher.split = split
        teacher.training = training
        n_drawn = 0 if training else n_candidates
        teacher._showing = Showing(self._data[split], training, max_examples, n_drawn, seed)
        teacher._scores = Scores()
        teacher.reset()
        return teacher

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
        return (self._turn >= self._end or self._run is not cursor.run) and cursor.is_exhausted()

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
            self._scores.add(self._labels, message)
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
        return self._shown.data.is_single_turn

    def batch_act(self, n_rows: int) -> MessageBatch:
        """The next examples in columns; only if ``is_single_turn``.

        n_rows (int): Rows wanted; fewer come at the end of the epoch.
        RAISES (ProtocolError): If the last batch has not been answered, the epoch is
            done, or episodes have several turns.
        """
        showing = self._shown
        if self._run is not showing.cursor.run:
            self.reset()
        if self._batch_labels is not None:
            raise self._unanswered("batch_act")
        if not showing.data.is_single_turn:
            text = "needs episodes of a single turn: use copies, or flatten them."
            raise ProtocolError(f"{self.id}.batch_act() {text}")
        columns, n_taken = showing.batch(n_rows)
        if not n_taken:
            raise self._past_end("batch_act")
        self._run = showing.cursor.run
        self._batch_labels = columns.get(showing.label_name) or [None] * n_taken
        return MessageBatch(columns, n_taken)

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
        self._scores.add_batch(labels, replies)
        self._batch_labels = None

    def texts(self) -> Iterator[str]:
        """Every text and label of the whole split once, in the order of the data."""
        return self._shown.data.texts()

    def examples(self) -> Iterator[Message]:
        """Every example in the order of the data, flattened: a turn within an episode
        carries the turns before it as `context`."""
        return self._shown.examples()

    @property
    def data_name(self) -> str:
        """What the split is read from, for error messages: its files, or the task."""
        return self._shown.data.origin

    @property
    def n_episodes(self) -> Optional[int]:
        """Number of episodes of an epoch; None while unknown for a stream."""
        return self._shown.n_episodes

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples of an epoch; None while unknown for a stream."""
        return self._shown.n_examples

    def set_metrics(self, metrics: Sequence[ExampleMetric]) -> None:
        """Score replies by these from now on (they are filled in place)."""
        self._scores.metrics = list(metrics)

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

    @property
    def _shown(self) -> Showing:
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
