"""What worlds, trainers and servers may ask of an agent, and of one that learns."""

import functools
from contextlib import contextmanager, nullcontext
from numbers import Integral
from pathlib import Path
from types import FunctionType
from typing import (
    Any,
    Callable,
    Collection,
    ContextManager,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from .batchers import Lengths, count_words
from .contract import (
    NOT_PARLAIS,
    CodeError,
    Contract,
    Returned,
    holds,
    is_kind,
    is_mapping,
    is_ours,
    place_of,
)
from .errors import ProtocolError
from .messages import DONT_KNOW, FIELDS, Message, MessageBatch, are_messages, column, is_message
from .metrics import Metric
from .metrics.ranking import RANKED
from .ops.later import Number
from .registry import registry

AgentT = TypeVar("AgentT", bound="Agent")
_EACH = "a list of Messages, one for each"


def _are_texts_or_none(value: Any, *given: Any) -> bool:
    return value is None or (isinstance(value, Collection) and not isinstance(value, str))


class Agent(Contract):
    """Anything that can observe a message and act. A subclass gives ``act``, which
    answers ``self.observation``, or ``batch_act``; one that gives ``observe``, too, calls
    ``super().observe(message)`` in it.

    Batching worlds use ``batch_act`` whenever it is given and ``use_batch_act`` is not
    False, on the original, never on a copy. An agent that ``takes_batches`` keeps nothing
    of a conversation but what stands in each example (`context`, `text`): single-turn data
    then reaches it in whole batches (``examples.Batch``), which it has not observed, and
    no copies are made.

    An agent with ``can_truncate`` obeys the field ``max_tokens`` of an observation: None
    (or missing), or a tuple of one int of 0 or more for each field of ``batch_lengths``.
    It reads at most so many tokens of that field, the last ones of the context and the
    first ones of the label, and says the same in ``batch_lengths``. Its own limits hold,
    too, whichever is lower.

    A reply may hold ``text``, ``text_candidates`` (best first), ``candidate_scores`` (one
    for each of these, higher is better), ``candidate_probabilities`` (likewise; of all
    candidates they sum to 1, unless the agent ``has_label_sets``), ``loss`` (of the example, in
    nats, where it is known), and any other field.
    """

    returns = {
        "act": Returned(f"a Message {FIELDS}", is_message),
        "observe": Returned(f"the message {FIELDS}", is_message),
        "batch_act": Returned(f"{_EACH} observation {FIELDS}", are_messages),
        "share": Returned("a dict", is_mapping),
        "clone": Returned("an Agent", lambda value: isinstance(value, Agent)),
        "replica": Returned("an Agent", lambda value: isinstance(value, Agent)),
        "reachable": Returned("None, or texts: a list or a set", _are_texts_or_none),
        "report": Returned('metrics by their names: {"name": AverageMetric(3, 4)}', holds(Metric)),
    }
    id: str = "agent"
    use_batch_act: bool = True
    takes_batches: bool = False
    # Whether it is a ``Learner``.
    learns: bool = False
    can_truncate: bool = False
    # Whether it makes a rectangle of each field of ``batch_lengths``, and so pays for padding.
    padded: Tuple[bool, ...] = ()
    # Whether its replies are names of classes; and these names, as far as they are known.
    has_classes: bool = False
    classes: Sequence[str] = ()
    # Whether all labels of an example are right together, and an example may have none (an empty
    # list); replies then have `predicted_labels`.
    has_label_sets: bool = False
    # Whether it chooses settings on the dev data (see ``Learner.tune`` and ``temperature``).
    needs_dev: bool = False
    # What divides a classifier's logits, so that its probabilities are calibrated: fitted on dev
    # at the end of training, when `rejects_below` is chosen, too. None of other agents.
    temperature: Optional[float] = None
    # Its reply where the best one is less probable than `rejects_below`; None: that is not chosen
    # yet, and will be the threshold with the `wanted` share of "precision" or "recall".
    reject_class: str = DONT_KNOW
    rejects_below: Optional[float] = 0.0
    wanted: Tuple[str, float] = ("", 0.0)
    # Whether it learns nothing from examples whose label is not among their candidates, and so
    # may get some.
    ignore_bad_candidates: bool = False
    # Whether in an evaluation it chooses from what messages bring as ``label_candidates``.
    heeds_candidates: bool = True
    # Whether its replies in an evaluation depend on what else is in a batch.
    replies_need_batch: bool = False
    # Candidates in the ranking of a reply, at most; an experiment raises it if a metric needs more.
    n_ranked: int = RANKED
    # Paths of files that the agent reads: `--resume` refuses a run if one of them has changed.
    own_files: Sequence[str] = ()
    # Names of all that ``report`` may hold; None if that is not known beforehand.
    reported: Optional[Sequence[str]] = None
    observation: Optional[Message] = None
    has_acted: bool = False

    def __init__(self, *given: Any):
        if given:
            raise TypeError(f"Agent.__init__() takes no arguments: {NOT_PARLAIS}.")

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        own = vars(cls)
        # Whole batches are not observed.
        if {"observe", "self_observe"} & own.keys() and not is_ours(cls):
            cls.takes_batches = own.get("takes_batches", False)

    def observe(self, message: Message) -> Message:
        """Take in what another agent said; returns it, possibly enriched.

        RAISES (ProtocolError): If the same speaker is observed twice without an
            act between.
        """
        pending = self.observation
        if pending is not None and pending.get("agent") == message.get("agent"):
            raise ProtocolError(
                f"{self.id}.observe() was called twice without act(): call act() (or batch_act() "
                "on the original) and then self_observe() before the next observe()."
            )
        self.observation = message
        self.has_acted = False
        return message

    def act(self) -> Message:
        """Answer the last observation.

        RAISES (ProtocolError): If nothing was observed since the last act.
        """
        if self.observation is None:
            raise ProtocolError(
                f"{self.id}.act() was called before observe(). (An observe() of your own must call "
                "super().observe(message).)"
            )
        if self.has_acted:
            raise ProtocolError(
                f"{self.id}.act() was called twice: call self_observe() with the reply, and "
                "observe() before the next act()."
            )
        reply = self.batch_act([self.observation])[0]
        self.has_acted = True
        return reply

    def batch_act(self, observations: Any) -> Sequence[Message]:
        """Answer many observations at once.

        observations (Sequence[Message]): Of the original and of copies.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither act() nor batch_act()")

    @property
    def can_batch(self) -> bool:
        """Whether batching worlds shall use ``batch_act``."""
        return self.use_batch_act is not False and type(self).batch_act is not Agent.batch_act

    def batch_lengths(self, observations: Any) -> Lengths:
        """The tokens that it will really encode for each observation, after history and
        truncation; here, the words. Without effect on metrics, cheap, and asked of the
        original.

        observations (Sequence[Message]): Of the original and of copies.
        RETURNS (Lengths): One column for each field that it lays out by itself (context,
            label), always the same ones, 0 where a row has nothing to encode there.
        """
        return count_words(observations)

    def self_observe(self, message: Message) -> None:
        """Take note of the agent's own act; ends its turn.

        RAISES (ProtocolError): If nothing was observed since the last turn.
        """
        if self.observation is None:
            raise ProtocolError(
                f"{self.id}.self_observe() was called before observe(). (An observe() of your own "
                "must call super().observe(message).)"
            )
        self.observation = None
        self.has_acted = False

    def share(self) -> Dict[str, Any]:
        """What copies have in common with the original (weights, data, counters)."""
        return dict(self.__dict__)

    def clone(self: AgentT) -> AgentT:
        """A copy for another conversation: shares ``share()``, adds its own state."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.share())
        copy.reset()
        return copy

    def replica(self: AgentT) -> AgentT:
        """This agent for another worker, which may run at the same time: it shares what
        does not change as it acts (weights, data) and counts for itself. An agent with
        metrics or caches of its own overrides this."""
        return self.clone()

    def reset(self) -> None:
        """Forget the conversation. Must replace its state, not change it in place:
        a fresh copy still points at the original's."""
        self.observation = None
        self.has_acted = False

    def conversation_state(self) -> Any:
        """What a copy knows of its conversation, as JSON values, so that a saved world
        can go on. An agent that keeps anything overrides this and its counterpart.

        RETURNS (Any): As it was before the observations that still wait for an act: who
            takes it back observes those anew. None: it knows nothing.
        """
        return None

    def set_conversation_state(self, value: Any) -> None:
        """Take back what ``conversation_state`` gave, in place of what the copy knows.
        Nothing waits for an act afterwards.

        value (Any): From ``conversation_state``, possibly through JSON (tuples have
            become lists).
        """
        self.reset()

    def reading(self) -> "ReadingOptions":
        """How it reads its data; one that says nothing reads all turns whole."""
        return ReadingOptions()

    @property
    def text_encoder(self) -> Any:
        """What makes token ids of its texts (a ``TextEncoder``), whose outcome a store may keep;
        None if there is none, or not yet."""
        return None

    def survey(self, train: Any) -> None:
        """Take from the training data what there is to answer with (classes, candidates), as
        ``initialize`` does before anything else; no weights.

        train (Teacher): Of the training split.
        RAISES (DataError): If nothing can be learnt from such data.
        """

    def reachable(self, example: Message) -> Optional[Collection[str]]:
        """All that it can answer an example of an evaluation with; None if that cannot be
        told. (A label that is not among it is wrong whatever is learnt.)"""
        return None

    def check_optimizer(self, optimizer: Any) -> None:
        """See, before any data is read, that the agent can learn with an optimizer.

        RAISES (ConfigError): If it cannot; it names the section [training.optimizer].
        """

    def check_packages(self) -> None:
        """See that what the agent needs for training is installed.

        RAISES (MissingPackageError): If not.
        """

    def evaluating(self) -> ContextManager[None]:
        """A stretch in which replies must depend on nothing but the weights and what is
        answered, not on what else is in a batch, for instance."""
        return nullcontext()

    def initialize(
        self,
        train: Any,
        *,
        tokenizer: Any = None,
        seed: int = 0,
        progress: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Learn from the training data what is not learnt step by step: vocabulary,
        classes, candidates, the first weights. An agent that needs none of it leaves
        this as it is.

        train (Teacher): Of the training split.
        tokenizer (Optional[Tokenizer]): From the config. It is empty: an agent that reads with it
            lets it ``build`` its vocabulary of the training texts, and keeps it.
        seed (int): Of everything that is drawn.
        progress (Optional[Callable]): Called with the number of texts read so far.
        """

    def to_disk(self, folder: Path) -> None:
        """Write what ``initialize`` and training found into a saved model's folder; the tokenizer,
        too (``tokenizer.to_disk``), if the agent reads with it."""

    def from_disk(self, folder: Path, *, tokenizer: Any = None) -> None:
        """Read what ``to_disk`` wrote, into an agent built from the same config.

        tokenizer (Optional[Tokenizer]): From the config. It is empty until its own ``from_disk``
            reads what its ``to_disk`` wrote.
        RAISES (ModelError): If a file is missing, damaged, or of another agent.
        """

    def report(self) -> Mapping[str, Metric]:
        """Metrics (``thincdialog.metrics``) gathered since ``reset_metrics``."""
        return {}

    def reset_metrics(self) -> None:
        """Start the metrics afresh."""

    def shutdown(self) -> None:
        """Release what the agent holds (files, processes)."""


class ReadingOptions(NamedTuple):
    """How an agent reads its data, for whoever looks it through.

    history_size (int): Turns of a context that it reads; -1 for all.
    use_reply (str): What becomes of its own turns: "label", "model" or "none".
    labels (Optional[Sequence[str]]): All that there may be, if its config lists them.
    encoder (Mapping[str, Any]): Arguments of its ``TextEncoder``.
    n_features (Optional[int]): Numbers of `features` that it reads in the place of text; 0 if it
        reads text; None if it does not say.
    other_fields (bool): Whether it reads fields of messages besides text and `features`.
    """

    history_size: int = -1
    use_reply: str = "label"
    labels: Optional[Sequence[str]] = None
    encoder: Mapping[str, Any] = {}
    n_features: Optional[int] = None
    other_fields: bool = False


class StepReport(NamedTuple):
    """What came of an update of the weights.

    examples (int): How many it learnt from; 0: nothing was changed.
    loss (Optional[Number]): What the step was to make smaller, summed (nats); None if it is
        not known. A float, or a number that is still on a device (``ops/later.py``).
    weight (int): Of how many losses; the step's gradient is the mean over as many.
    unit (str): The unit of the losses: "examples" or "tokens".
    gradient_norm (Number): Of the mean gradient, before clipping.
    counts (Mapping[str, int]): What else can be added up: "tokens" that were read and the
        "cells" that they took with padding, "contexts" and the "truncated_contexts" among
        them, ...
    learn_rate (Optional[float]): Of the optimizer; whoever makes the steps fills it in.
    """

    examples: int
    loss: Optional[Number] = None
    weight: int = 0
    unit: str = "examples"
    gradient_norm: Number = 0.0
    counts: Mapping[str, int] = {}
    learn_rate: Optional[float] = None


NO_STEP = StepReport(0)


def _is_report(value: Any, *given: Any) -> bool:
    if not isinstance(value, StepReport):
        return False
    loss = 0.0 if value.loss is None else value.loss
    try:
        list(map(float, (value.examples, loss, value.weight, value.gradient_norm)))
    except (TypeError, ValueError):
        return False
    return value.examples >= 0


def _are_replies_or_none(value: Any, batch: Any, *given: Any) -> bool:
    return value is None or are_messages(value, batch)


def _are_weights(value: Any) -> bool:
    shape, dtype = getattr(value, "shape", ()), getattr(value, "dtype", None)
    return len(shape) == 1 and str(dtype) == "float32"


def _in_place(update: Callable) -> Callable:
    """The ``update`` of a user's agent, which must change the weights in place."""

    @functools.wraps(update)
    def updated(self: "Learner", *given: Any, **named: Any) -> StepReport:
        # In a loop written by hand, an agent may do without any.
        n_weights = self.n_weights if hasattr(self, "weights") else 0
        report: StepReport = update(self, *given, **named)
        if n_weights and self.n_weights != n_weights:
            found = f"left {self.n_weights:,} weights where there were {n_weights:,}"
            raise CodeError(f"{place_of(update)} {found}: it must change them in place")
        return report

    return updated


class Learner(Agent):
    """An agent that learns: worlds let it ``learn`` batches of examples, and after one or
    several of them the loop asks for an ``update``. A subclass gives ``learn``, ``update``,
    ``answer`` and ``weights``; of the rest, what it needs.

        class Perceptron(Learner):
            def learn(self, batch): ...            # adds to self.gradient
            def update(self, optimizer): ...       # changes self.weights, clears the gradient
            def answer(self, batch): ...           # replies

    weights (Floats1d): All that is learnt step by step, one float32 vector, which ``update``
        changes in place: workers may share it. Whoever else writes into it calls
        ``weights_changed``.
    n_gathered (int): Examples learnt since the last update.
    has_gradient (bool): Whether what it learns is a gradient that others may sum and apply: then
        it has ``parameters`` (``models.parameters.FlatParameters``) and ``hand_over``.
    beginning (Sequence[str]): Where the first weights come from and what of it fits, a line
        each, if there is anything to say; of ``initialize`` or ``initialize_from``.
    model (Optional[Model]): Its Thinc model, for commands that look into it.
    """

    returns = {
        **Agent.returns,
        "learn": Returned(f"None, or {_EACH} example {FIELDS}", _are_replies_or_none),
        "update": Returned("a StepReport of numbers, examples 0 or more", _is_report),
        "answer": Returned(f"{_EACH} example {FIELDS}", are_messages),
    }
    has = {
        "weights": Returned("one float32 vector (a NumPy array of one dimension)", _are_weights),
        "n_gathered": Returned("a whole number", is_kind(Integral)),
    }
    learns = True
    takes_batches = True
    weights: Any
    n_gathered: int = 0
    has_gradient: bool = False
    beginning: Sequence[str] = ()
    model: Any = None

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        update = vars(cls).get("update")
        if isinstance(update, FunctionType) and not is_ours(cls):
            cls.update = _in_place(update)  # type: ignore[method-assign]

    @property
    def n_weights(self) -> int:
        """How many numbers are learnt."""
        return len(self.weights)

    def initialize_from(
        self,
        folder: Path,
        train: Any,
        *,
        tokenizer: Any = None,
        seed: int = 0,
        progress: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Begin with what another run has saved, in place of ``initialize``. Here: all that
        ``from_disk`` reads; the training data adds nothing.

        folder (Path): Of the saved model; it has been looked through.
        train, tokenizer, seed, progress: As for ``initialize``.
        RAISES (ModelError): If nothing fits.
        """
        self.from_disk(folder, tokenizer=tokenizer)
        self.beginning = ["all that was saved"]

    def batch_act(self, observations: Sequence[Message]) -> Sequence[Message]:
        """Learn from the examples that have ``labels``; answer where none has."""
        has_labels = [row for row, labels in enumerate(column(observations, "labels")) if labels]
        if not has_labels:
            return self.answer(observations)
        replies = self.learn([observations[row] for row in has_labels])
        return in_their_places(replies, has_labels, len(observations))

    def begin_microbatch(self, seed: int, step: int, number: int) -> None:
        """What is learnt next is a part of a step: random draws follow from these numbers.

        step (int): Of the update to come, from 1.
        number (int): Of the part, from 0.
        """

    def learn(self, batch: Any) -> Optional[Sequence[Message]]:
        """Gather from a batch what the next ``update`` needs, a gradient for instance.

        batch (Sequence[Message]): Examples that all have ``labels``, as ``batch_act`` gives
            them: here messages, in a subclass maybe an ``examples.Batch``.
        RETURNS (Optional[Sequence[Message]]): What it would have replied to each, if learning
            tells; to be shown and scored, no part of the conversation.
        RAISES (TrainingError): If the loss is not finite.
        """
        raise NotImplementedError

    def gathered_loss(self) -> float:
        """The mean loss of what was learnt since the last update, with the weights as they
        are."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Drop what was learnt since the last update. (Only ``find-lr`` asks for it.)"""
        raise NotImplementedError

    def update(self, optimizer: Any) -> StepReport:
        """Change the weights by all that was learnt since the last update, and forget it.

        optimizer (Optimizer): Of the config; its schedules are to be stepped.
        RETURNS (StepReport): ``NO_STEP`` if nothing was learnt.
        RAISES (TrainingError): If the gradient is not finite; the weights stay.
        """
        raise NotImplementedError

    def hand_over(self) -> Tuple[StepReport, Callable[[], Sequence[Optional[str]]]]:
        """Forget what was learnt since the last update but for the gradient, a sum over its
        examples, which the caller takes out of ``parameters``.

        RETURNS (Tuple[StepReport, Callable]): What was learnt, and what gives the ids of the
            examples.
        """
        raise NotImplementedError

    def answer(self, batch: Sequence[Message]) -> Sequence[Message]:
        """Replies, one for each example."""
        raise NotImplementedError

    def tune(self, dev: Any) -> None:
        """Choose settings on the dev data. Called before each evaluation in training if the agent
        ``needs_dev``. Keep the choice in ``weights``, so that the best model has its own.

        dev (Teacher): Of the dev data.
        """

    def weights_changed(self) -> None:
        """Drop what was computed from the weights, because they have changed."""

    def use_weights(self, weights: Any) -> None:
        """Learn in another vector from now on, such as one in shared memory that holds the
        same weights."""
        self.weights = weights

    @contextmanager
    def with_weights(self, weights: Any) -> Iterator[None]:
        """Other weights (such as averages) for a while; the old come back bit by bit."""
        before = self.weights.copy()
        self.weights[:] = weights
        self.weights_changed()
        try:
            yield
        finally:
            self.weights[:] = before
            self.weights_changed()


def in_their_places(
    replies: Optional[Sequence[Message]], rows: Sequence[int], n_rows: int
) -> Sequence[Message]:
    """Replies to some rows of a batch; empty ones to the others.

    replies (Optional[Sequence[Message]]): One for each of the rows; None: all are empty.
    rows (Sequence[int]): Theirs, ascending.
    n_rows (int): Of the whole batch.
    """
    if replies is None:
        return MessageBatch({}, n_rows)
    if len(replies) == n_rows:
        return replies
    if isinstance(replies, MessageBatch) and replies.is_on_device:
        partial, columns = functools.partial, {}
        for name in replies.names():
            columns[name] = partial(_placed, partial(replies.column, name), rows, n_rows)
        return MessageBatch(columns, n_rows, is_on_device=True)
    return [each or Message() for each in _placed(lambda: replies, rows, n_rows)]


def _placed(cells: Callable[[], Sequence[Any]], rows: Sequence[int], n_rows: int) -> List[Any]:
    placed: List[Any] = [None] * n_rows
    for row, cell in zip(rows, cells()):
        placed[row] = cell
    return placed


registry.agents.makes(Agent)


Observations = Sequence[Message]
