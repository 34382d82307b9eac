"""The interface of agents, and of agents that learn, for worlds, trainers and servers."""

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
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from .batchers import Lengths, are_lengths, count_words
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
from .messages import (
    DONT_KNOW,
    FIELDS,
    Message,
    are_messages,
    column,
    in_their_places,
    is_message,
)
from .metrics import Metric
from .metrics.ranking import RANKED
from .ops.later import Number
from .registry import registry

AgentT = TypeVar("AgentT", bound="Agent")
_EACH = "a list of Messages, one for each"


def _are_texts_or_none(value: Any, *given: Any) -> bool:
    return value is None or (isinstance(value, Collection) and not isinstance(value, str))


class Agent(Contract):
    """Base of all objects that observe messages and act. A subclass defines ``act``, which
    answers ``self.observation``, or ``batch_act``. If it also defines ``observe``, that method must
    call ``super().observe(message)``.

    Batching worlds use ``batch_act`` if the subclass defines it and ``use_batch_act`` is not
    False. They call it on the original agent, never on a copy. An agent that ``takes_batches``
    keeps no state of a conversation, because each example holds it (`context`, `text`).
    Single-turn data then reaches the agent in whole batches (``examples.Batch``) without
    ``observe``, and no copies are made.

    An agent with ``can_truncate`` obeys the field ``max_tokens`` of an observation: None
    (or missing), or a tuple with one int of 0 or more for each field of ``batch_lengths``.
    It reads at most that many tokens of the field, the last ones of the context and the
    first ones of the label, and counts only these in ``batch_lengths``. Its own limits apply
    as well; the lower limit wins.

    A reply may hold ``text``, ``text_candidates`` (best first), ``candidate_scores`` (one
    for each candidate, higher is better), ``candidate_probabilities`` (one for each candidate;
    over all candidates they sum to 1, unless the agent ``has_label_sets``), ``loss`` (of the
    example, in nats, if known), and any other field.
    """

    returns = {
        "act": Returned(f"a Message {FIELDS}", is_message),
        "observe": Returned(f"the message {FIELDS}", is_message),
        "batch_act": Returned(f"{_EACH} observation {FIELDS}", are_messages),
        "batch_lengths": Returned(
            "Lengths(counts, padded): counts an array of whole numbers, 0 or more, with a row for "
            "each observation and a column for each field; padded one bool for each field",
            are_lengths,
        ),
        "share": Returned("a dict", is_mapping),
        "clone": Returned("an Agent", lambda value: isinstance(value, Agent)),
        "replica": Returned("an Agent", lambda value: isinstance(value, Agent)),
        "reachable": Returned("None, or texts: a list or a set", _are_texts_or_none),
        "report": Returned('metrics by their names: {"name": AverageMetric(3, 4)}', holds(Metric)),
    }
    id: str = "agent"
    use_batch_act: bool = True
    takes_batches: bool = False
    # Whether the agent is a ``Learner``.
    learns: bool = False
    can_truncate: bool = False
    # For each field of ``batch_lengths``: whether the agent pads it to a rectangle.
    padded: Tuple[bool, ...] = ()
    # Whether replies are names of classes; and these names, if they are known.
    has_classes: bool = False
    classes: Sequence[str] = ()
    # Whether the agent predicts all labels of an example (multi-label), which may be none (an empty
    # list); replies then have `predicted_labels`.
    has_label_sets: bool = False
    # Whether the agent chooses settings on the dev data (see ``Learner.tune``, ``temperature``).
    needs_dev: bool = False
    # The divisor of a classifier's logits that calibrates its probabilities. It is fitted on dev at
    # the end of training, when `rejects_below` is chosen too. None for other agents.
    temperature: Optional[float] = None
    # The reply if the best one is less probable than `rejects_below`. None: that threshold is not
    # chosen yet, and will be the one with the `wanted` "precision" or "recall".
    reject_class: str = DONT_KNOW
    rejects_below: Optional[float] = 0.0
    wanted: Tuple[str, float] = ("", 0.0)
    # Whether the agent learns nothing from examples whose label is not among their candidates, so
    # that the data may contain such examples.
    ignore_bad_candidates: bool = False
    # Whether the agent ranks the ``label_candidates`` of a message in an evaluation.
    uses_candidates: bool = True
    # Whether replies in an evaluation depend on the other examples of the batch.
    replies_need_batch: bool = False
    # Maximum number of candidates in the ranking of a reply; an experiment raises it if a metric
    # needs more.
    n_ranked: int = RANKED
    # Paths of files that the agent reads: `--resume` refuses a run if one of them has changed.
    own_files: Sequence[str] = ()
    # Names of all metrics that ``report`` may hold; None if they are not known in advance.
    reported: Optional[Sequence[str]] = None
    observation: Optional[Message] = None
    has_acted: bool = False

    def __init__(self, *given: Any):
        if given:
            raise TypeError(f"Agent.__init__() takes no arguments: {NOT_PARLAIS}.")

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        own = vars(cls)
        # An agent that takes whole batches never observes, so a custom ``observe`` would not run.
        if {"observe", "self_observe"} & own.keys() and not is_ours(cls):
            cls.takes_batches = own.get("takes_batches", False)

    def observe(self, message: Message) -> Message:
        """Take in another agent's message, and return it, possibly with more fields.

        RAISES (ProtocolError): If the same speaker is observed twice without an
            ``act`` in between.
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

        RAISES (ProtocolError): If nothing was observed since the last ``act``.
        """
        if self.observation is None:
            raise ProtocolError(
                f"{self.id}.act() was called before observe(). (A custom observe() must call "
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

        observations (Sequence[Message]): Observations of the original and of copies.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither act() nor batch_act()")

    @property
    def can_batch(self) -> bool:
        """Whether batching worlds should use ``batch_act``."""
        return self.use_batch_act is not False and type(self).batch_act is not Agent.batch_act

    def batch_lengths(self, observations: Any) -> Lengths:
        """Count the tokens that the agent will encode for each observation, after history and
        truncation; by default, the words. The method must be cheap and must not affect metrics.
        It is called on the original.

        observations (Sequence[Message]): Observations of the original and of copies.
        RETURNS (Lengths): One column for each field that the agent encodes separately (context,
            label), always in the same number and order; 0 where a row has nothing to encode.
        """
        return count_words(observations)

    def self_observe(self, message: Message) -> None:
        """Take note of the agent's own reply, and end its turn.

        RAISES (ProtocolError): If nothing was observed since the last turn.
        """
        if self.observation is None:
            raise ProtocolError(
                f"{self.id}.self_observe() was called before observe(). (A custom observe() must "
                "call super().observe(message).)"
            )
        self.observation = None
        self.has_acted = False

    def share(self) -> Dict[str, Any]:
        """Return the attributes that copies share with the original (weights, data, counters)."""
        return dict(self.__dict__)

    def clone(self: AgentT) -> AgentT:
        """Make a copy for another conversation: it shares ``share()``, and has its own state."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.share())
        copy.reset()
        return copy

    def replica(self: AgentT) -> AgentT:
        """Make a copy for another worker, which may run at the same time. The copy shares the
        attributes that do not change as it acts (weights, data), and has its own counters. An
        agent with its own metrics or caches overrides this method."""
        return self.clone()

    def reset(self) -> None:
        """Forget the conversation. This must replace the state, not change it in place,
        because a new copy still refers to the original's state."""
        self.observation = None
        self.has_acted = False

    def conversation_state(self) -> Any:
        """Return a copy's state of its conversation, as JSON values, so that a saved world
        can continue. An agent that keeps state overrides this and ``set_conversation_state``.

        RETURNS (Any): The state before the observations that still wait for an ``act``, because
            the agent observes those again after its state is restored. None: there is no state.
        """
        return None

    def set_conversation_state(self, value: Any) -> None:
        """Replace the copy's state by one from ``conversation_state``. Afterwards no
        observation waits for an ``act``.

        value (Any): From ``conversation_state``, possibly through JSON (tuples have
            become lists).
        """
        self.reset()

    def confidence(self, text: Optional[str], probability: float) -> float:
        """Return the number that thresholds are compared with: the probability of the best
        candidate; or 0.0 if the text is blank and the agent reads nothing else, because the best
        candidate is then only the most frequent one.

        text (Optional[str]): Text of the message; None if it has none.
        """
        if text and not text.isspace():
            return probability
        reads = self.reading()
        return probability if reads.n_features or reads.other_fields else 0.0

    def decide(
        self, text: Optional[str], best: str, probability: float, threshold: Optional[float] = None
    ) -> str:
        """Return the reply: the best candidate, or ``reject_class`` if its ``confidence`` is below
        the threshold.

        text, probability: As for ``confidence``.
        threshold (Optional[float]): Replaces ``rejects_below``.
        """
        least = self.rejects_below if threshold is None else threshold
        return best if self.confidence(text, probability) >= (least or 0.0) else self.reject_class

    def reading(self) -> "ReadingOptions":
        """Return how the agent reads its data; by default it reads all turns whole."""
        return ReadingOptions()

    @property
    def text_encoder(self) -> Any:
        """The agent's ``TextEncoder``, whose token ids a store may keep; None if there is none, or
        none yet."""
        return None

    def survey(self, train: Any) -> None:
        """Collect the possible replies (classes, candidates) from the training data, without
        changing weights. ``initialize`` does this first.

        train (Teacher): Teacher of the training split.
        RAISES (DataError): If the agent cannot be trained on such data.
        """

    def reachable(self, example: Message) -> Optional[Collection[str]]:
        """Return all possible replies to an example of an evaluation; None if they are not known.
        (The agent can never get a label right that is not among them.)"""
        return None

    def check_optimizer(self, optimizer: Any) -> None:
        """Check, before any data is read, that the agent can be trained with an optimizer.

        RAISES (ConfigError): If the agent cannot be trained with the optimizer; the error names
            the section [training.optimizer].
        """

    def check_packages(self) -> None:
        """Check that the packages that the agent needs for training are installed.

        RAISES (MissingPackageError): If a package is missing.
        """

    def evaluating(self) -> ContextManager[None]:
        """Return a context in which a reply must depend only on the weights and the example, for
        instance not on the other examples of a batch."""
        return nullcontext()

    def initialize(
        self,
        train: Any,
        *,
        tokenizer: Any = None,
        seed: int = 0,
        progress: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Set up the vocabulary, the classes or candidates, and the initial weights from the
        training data. An agent that needs none of these does not override this method.

        train (Teacher): Teacher of the training split.
        tokenizer (Optional[Tokenizer]): Tokenizer of the config, still empty. An agent that uses it
            calls its ``build`` with the training texts, and keeps it.
        seed (int): Seed of all random draws.
        progress (Optional[Callable]): Called with the number of texts read so far.
        """

    def to_disk(self, folder: Path) -> None:
        """Write the results of ``initialize`` and training to a saved model's folder, including the
        tokenizer (``tokenizer.to_disk``) if the agent uses it."""

    def from_disk(self, folder: Path, *, tokenizer: Any = None) -> None:
        """Read the files from ``to_disk`` into an agent built from the same config.

        tokenizer (Optional[Tokenizer]): Tokenizer of the config. It is empty until its own
            ``from_disk`` reads the files from its ``to_disk``.
        RAISES (ModelError): If a file is missing, damaged, or of another agent.
        """

    def report(self) -> Mapping[str, Metric]:
        """Return the metrics (``thincdialog.metrics``) since ``reset_metrics``."""
        return {}

    def reset_metrics(self) -> None:
        """Reset the metrics."""

    def shutdown(self) -> None:
        """Release the agent's resources (files, processes)."""


class ReadingOptions(NamedTuple):
    """Describe how an agent reads its data, for code that inspects the data.

    history_size (int): Number of turns of a context that the agent reads; -1 for all.
    use_reply (str): The agent's own turns in a context: "label", "model" or "none".
    labels (Optional[Sequence[str]]): All possible labels, if the agent's config lists them.
    encoder (Mapping[str, Any]): Arguments of the agent's ``TextEncoder``.
    n_features (Optional[int]): Length of the `features` that the agent reads instead of text; 0 if
        it reads text; None if unknown.
    other_fields (bool): Whether the agent reads fields other than text and `features`.
    """

    history_size: int = -1
    use_reply: str = "label"
    labels: Optional[Sequence[str]] = None
    encoder: Mapping[str, Any] = {}
    n_features: Optional[int] = None
    other_fields: bool = False


class StepReport(NamedTuple):
    """Report an update of the weights.

    examples (int): Number of examples trained on; 0 if the weights did not change.
    loss (Optional[Number]): Sum of the losses of the step (nats); None if not known. A float, or
        a number that is still on a device (``ops/later.py``).
    weight (int): Number of losses in the sum; the step's gradient is the mean over them.
    unit (str): Unit of the losses: "examples" or "tokens".
    gradient_norm (Number): Norm of the mean gradient, before clipping.
    counts (Mapping[str, int]): Other counts to add up: "tokens" that were read and their "cells"
        including padding, "contexts" and the "truncated_contexts" among them, ...
    learn_rate (Optional[float]): Learning rate of the optimizer; the runner sets it.
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
    """Wrap the ``update`` of a custom agent, to check that it changes the weights in place."""

    @functools.wraps(update)
    def updated(self: "Learner", *given: Any, **named: Any) -> StepReport:
        # In a hand-written training loop, an agent may have no weights.
        n_weights = self.n_weights if hasattr(self, "weights") else 0
        report: StepReport = update(self, *given, **named)
        if n_weights and self.n_weights != n_weights:
            found = f"changed the number of weights from {n_weights:,} to {self.n_weights:,}"
            raise CodeError(f"{place_of(update)} {found}: it must change them in place")
        return report

    return updated


class Learner(Agent):
    """Base of agents that learn: worlds call ``learn`` with batches of examples, and after one or
    several batches the loop calls ``update``. A subclass defines ``learn``, ``update``,
    ``answer`` and ``weights``, and overrides other methods as needed.

        class Perceptron(Learner):
            def learn(self, batch): ...            # adds to self.gradient
            def update(self, optimizer): ...       # changes self.weights, clears the gradient
            def answer(self, batch): ...           # replies

    weights (Floats1d): All trained parameters in one float32 vector, which ``update`` changes in
        place, because workers may share it. Other code that writes to it must call
        ``weights_changed`` afterwards.
    n_gathered (int): Number of examples trained on since the last update.
    has_gradient (bool): Whether ``learn`` accumulates a gradient that other code may sum and apply.
        The agent then has ``parameters`` (``models.parameters.FlatParameters``) and ``hand_over``.
    beginning (Sequence[str]): Lines about the source of the initial weights and the parts that
        fit; set by ``initialize`` or ``initialize_from``, and often empty.
    model (Optional[Model]): The agent's Thinc model, for commands that inspect it.
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
        """Number of trained parameters."""
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
        """Initialize from the saved model of another run, instead of ``initialize``. By default,
        load everything with ``from_disk`` and ignore the training data.

        folder (Path): Folder of the saved model, which has been checked.
        train, tokenizer, seed, progress: As for ``initialize``.
        RAISES (ModelError): If no part of the saved model fits.
        """
        self.from_disk(folder, tokenizer=tokenizer)
        self.beginning = ["the whole saved model"]

    def batch_act(self, observations: Sequence[Message]) -> Sequence[Message]:
        """Learn from the examples that have ``labels``; if none has, answer all of them."""
        has_labels = [row for row, labels in enumerate(column(observations, "labels")) if labels]
        if not has_labels:
            return self.answer(observations)
        replies = self.learn([observations[row] for row in has_labels])
        return in_their_places(replies, has_labels, len(observations))

    def begin_microbatch(self, seed: int, step: int, number: int) -> None:
        """Begin a part of a step. Random draws in the next ``learn`` depend only on these numbers.

        step (int): Number of the next update, from 1.
        number (int): Number of the part in the step, from 0.
        """

    def learn(self, batch: Any) -> Optional[Sequence[Message]]:
        """Accumulate from a batch the data for the next ``update``, such as a gradient.

        batch (Sequence[Message]): Examples that all have ``labels``, as ``batch_act`` passes
            them: here messages, in a subclass possibly an ``examples.Batch``.
        RETURNS (Optional[Sequence[Message]]): The replies that the agent would have given, if
            learning computes them. They are shown and scored, but not part of the conversation.
        RAISES (TrainingError): If the loss is not finite.
        """
        raise NotImplementedError

    def gathered_loss(self) -> float:
        """Return the mean loss of the examples since the last update, with the current weights."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Discard the data accumulated since the last update. (Only ``find-lr`` calls this.)"""
        raise NotImplementedError

    def update(self, optimizer: Any) -> StepReport:
        """Change the weights by the data accumulated since the last update, then discard the data.

        optimizer (Optimizer): Optimizer of the config; the method must step its schedules.
        RETURNS (StepReport): The report; ``NO_STEP`` if there was no data.
        RAISES (TrainingError): If the gradient is not finite; the weights then do not change.
        """
        raise NotImplementedError

    def hand_over(self) -> Tuple[StepReport, Callable[[], Sequence[Optional[str]]]]:
        """Discard the data accumulated since the last update except the gradient (a sum over
        the examples), which the caller takes from ``parameters``.

        RETURNS (Tuple[StepReport, Callable]): The report on the examples, and a function that
            returns their ids.
        """
        raise NotImplementedError

    def answer(self, batch: Sequence[Message]) -> Sequence[Message]:
        """Return replies, one for each example."""
        raise NotImplementedError

    def tune(self, dev: Any) -> None:
        """Choose settings on the dev data. Called before each evaluation in training if the agent
        ``needs_dev``. Keep the choice in ``weights``, so that the best model has its own.

        dev (Teacher): Teacher of the dev data.
        """

    def weights_changed(self) -> None:
        """Drop values that were computed from the weights, because the weights have changed."""

    def use_weights(self, weights: Any) -> None:
        """Use another vector for the weights from now on, such as one in shared memory with the
        same values."""
        self.weights = weights

    @contextmanager
    def with_weights(self, weights: Any) -> Iterator[None]:
        """Use other weights (such as averages) in the block, then restore the old ones exactly."""
        before = self.weights.copy()
        self.weights[:] = weights
        self.weights_changed()
        try:
            yield
        finally:
            self.weights[:] = before
            self.weights_changed()


registry.agents.makes(Agent)


Observations = Sequence[Message]
