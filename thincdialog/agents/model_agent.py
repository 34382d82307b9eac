"""The agent whose replies come from a Thinc model; rankers and classifiers build on it."""

from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar

from thinc.api import Model, Optimizer, fix_random_seed
from thinc.types import Ragged

from ..batchers import Lengths
from ..data import TextEncoder, Tokenizer
from ..errors import ProtocolError, TrainingError
from ..files.json_file import read_state, write_json
from ..messages import Message, MessageBatch, column
from ..metrics import Metric
from ..models.parameters import FlatParameters
from ..models.replica import replicate
from ..models.vocabulary_size import set_vocabulary
from ..models.weights_file import read_weights, restore_dimensions, write_weights
from ..ops.dialog_fast_ops import DialogFastOps
from ..protocol import Observations
from ..teachers import Teacher
from .conversation import ConversationAgent
from .counters import Counters
from .fields import CONTEXT, LABEL, has_rectangles, token_limits
from .not_finite import not_finite
from .setup_errors import misfit, no_tokenizer
from .training_labels import with_labels

ModelAgentT = TypeVar("ModelAgentT", bound="ModelAgent")


class ModelAgent(ConversationAgent):
    """Base of the agents that learn. A subclass says what it learns besides the
    weights (``learn``), how to train on a batch and how to answer one.

    model (Model): Input and output as the subclass says.
    history_size (int): Turns of the conversation that the model sees, the current
        one included; -1 for all.
    max_context (int): Tokens of them, the last ones are kept; 0 for no limit.
    max_label (int): Tokens of a reply, the first ones are kept; 0 for no limit.
    delimiter (bool): Whether a ``<turn>`` token stands between turns.
    speaker_tokens (bool): Whether each turn starts with its speaker's token.
    segments (str): What the model is told to be one unit: "turn" or "line".
    use_reply (str): What the history keeps of the agent's own side: "label" (the
        right reply where it is known), "model" (always its own; nothing in training,
        where it gives no replies), or "none".
    """

    needs_text = True
    can_truncate = True

    def __init__(
        self,
        model: Model,
        *,
        history_size: int = -1,
        max_context: int = 256,
        max_label: int = 64,
        delimiter: bool = True,
        speaker_tokens: bool = False,
        segments: str = "turn",
        use_reply: str = "label",
    ):
        super().__init__(history_size=history_size, use_reply=use_reply)
        self.model = model
        self.text_options: Dict[str, Any] = {
            "history_size": history_size,
            "max_context": max_context,
            "max_label": max_label,
            "delimiter": delimiter,
            "speaker_tokens": speaker_tokens,
            "segments": segments,
        }
        self.counters = Counters()
        self.tokenizer: Optional[Tokenizer] = None
        self._text: Optional[TextEncoder] = None
        self._parameters: Optional[FlatParameters] = None
        self.padded = self.padded_fields()

    @property
    def parameters(self) -> FlatParameters:
        """All weights and gradients, in two vectors.

        RAISES (ProtocolError): Before ``initialize`` or ``from_disk``.
        """
        if self._parameters is None:
            raise ProtocolError(f"{self.id} has no weights yet: call initialize() or from_disk().")
        return self._parameters

    @property
    def text(self) -> TextEncoder:
        """Turns text into arrays.

        RAISES (ProtocolError): Before ``initialize`` or ``from_disk``.
        """
        if self._text is None:
            raise ProtocolError(f"{self.id} cannot read yet: call initialize() or from_disk().")
        return self._text

    # --- life-cycle -------------------------------------------------------------

    def initialize(
        self,
        train: Teacher,
        *,
        tokenizer: Optional[Tokenizer] = None,
        seed: int = 0,
        progress: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Build vocabulary, classes or candidates and weights from the training data.

        RAISES (ConfigError): If text is to be read and there is no tokenizer.
        """
        self.learn(train)
        if self.needs_text:
            if tokenizer is None:
                raise no_tokenizer()
            if tokenizer.needs_texts:
                tokenizer.build(train.texts(), progress)
        self.set_tokenizer(tokenizer)
        # Thinc's initializers draw from the global generators.
        fix_random_seed(seed)
        self.lay_out_weights()

    def set_tokenizer(self, tokenizer: Optional[Tokenizer]) -> None:
        """Use a built tokenizer; the model's vocabulary takes its size."""
        self.tokenizer = tokenizer
        if tokenizer is not None:
            self._text = TextEncoder(tokenizer, **self.text_options)
            self._text.is_compiled = isinstance(self.model.ops, DialogFastOps)
            set_vocabulary(self.model, tokenizer.n_ids)

    def lay_out_weights(self) -> None:
        """Allocate the weights and put them into one vector.

        RAISES (ConfigError): If the model cannot read what it is to read.
        """
        sample = self.sample()
        try:
            self.model.initialize(*sample)
        except Exception as error:
            raise misfit(error, sample[0], self.needs_text) from error
        self._parameters = FlatParameters(self.model)

    def replica(self: ModelAgentT) -> ModelAgentT:
        """This agent for another worker, which may run at the same time: it has the very
        same weights, and its own of all that changes as it learns or answers (ops,
        gradients, counts, conversation). A subclass that keeps more adds it.

        RAISES (ProtocolError): Before ``initialize`` or ``from_disk``.
        """
        replica = self.clone()
        replica.model = replicate(self.model)
        replica._parameters = self.parameters.replica(replica.model)
        replica.counters = Counters()
        if self._text is not None:
            replica._text = self._text.replica()
        return replica

    def learn(self, train: Teacher) -> None:
        """Take from the training data what is not weights (classes, candidates)."""
        raise NotImplementedError

    def sample(self) -> Sequence[Any]:
        """Arguments for ``model.initialize``: a tiny input (and output)."""
        raise NotImplementedError

    def to_disk(self, folder: Path) -> None:
        """Write what was learnt into the folder of a saved model."""
        write_json(folder / "agent.json", self.state())
        write_weights(folder, self.model, self.parameters)
        if self.tokenizer is not None:
            (folder / "tokenizer").mkdir(exist_ok=True)
            self.tokenizer.to_disk(folder / "tokenizer")

    def from_disk(self, folder: Path, *, tokenizer: Optional[Tokenizer] = None) -> None:
        """Read what ``to_disk`` wrote into an agent built from the same config.

        tokenizer (Optional[Tokenizer]): Built from the config, not yet filled.
        RAISES (ModelError): If a file is missing, damaged, or of another model.
        """
        read_state(folder, self.set_state)
        if tokenizer is not None:
            tokenizer.from_disk(folder / "tokenizer")
        self.set_tokenizer(tokenizer)
        restore_dimensions(folder, self.model)
        self.lay_out_weights()
        read_weights(folder, self.parameters)

    def state(self) -> Dict[str, Any]:
        """What ``learn`` found, as JSON values."""
        raise NotImplementedError

    def set_state(self, state: Dict[str, Any]) -> None:
        """Take back what ``state`` gave.

        RAISES (KeyError, TypeError, ValueError): If it is not such a state.
        """
        raise NotImplementedError

    # --- acting -----------------------------------------------------------------

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        """Answer many conversations at once; learn from those that have ``labels``.

        The gradient is added to ``parameters.gradients``; ``update`` applies it.
        """
        labelled = with_labels(observations)
        if not len(labelled):
            return self.answer(observations)
        self.train_batch(labelled)
        return MessageBatch({}, len(observations))

    def train_batch(self, observations: Observations) -> None:
        """Add the gradient of a batch; every observation has ``labels``."""
        raise NotImplementedError

    def answer(self, observations: Observations) -> Sequence[Message]:
        """Replies of the model, with ``text`` and, where there are, ``text_candidates``."""
        raise NotImplementedError

    def count_loss(self, observations: Observations, losses: Any) -> None:
        """Count the losses of training examples, and see that they are finite.

        losses (Floats1d): One for each observation.
        RAISES (TrainingError): If the sum is not finite.
        """
        ids = column(observations, "id")
        total = float(losses.sum())
        if total - total != 0.0:  # inf and nan
            raise not_finite("loss", ids)
        self.counters.learnt(ids, total)

    def seed(self, seed: int, step: int, microbatch: int) -> None:
        """Make all random draws of the next batch (dropout) a function of these."""
        ops: Any = self.model.ops
        ops.seed(seed, step, microbatch)

    def update(self, optimizer: Optimizer) -> float:
        """Apply the gathered gradient, as a mean over its examples, and clear it.

        RETURNS (float): Norm of the mean gradient, before clipping.
        RAISES (TrainingError): If the gradient is not finite; the weights stay.
        """
        scale = 1.0 / max(1, self.counters.examples)
        try:
            norm = self.parameters.update(optimizer, scale)
        except TrainingError:
            raise not_finite("gradient", self.counters.ids) from None
        self.counters.updated()
        self.forget_computed()
        return norm

    def forget_computed(self) -> None:
        """Drop what was computed from the weights, because they have changed."""

    # --- text -------------------------------------------------------------------

    def padded_fields(self) -> Tuple[bool, ...]:
        """Whether the model makes a rectangle of each field of ``batch_lengths``."""
        return (has_rectangles(self.model),)

    def observed_contexts(self, observations: Observations) -> Ragged:
        """What the model reads of the observations' turns."""
        return self.contexts(column(observations, "turns"), token_limits(observations, CONTEXT))

    def batch_lengths(self, observations: Observations) -> Lengths:
        """The tokens that the model will read of each observation; see ``Agent``."""
        limits = token_limits(observations, CONTEXT)
        lengths = self.text.context_lengths(column(observations, "turns"), limits)
        return Lengths(lengths[:, None], self.padded)

    def contexts(self, conversations: Sequence[Any], limits: Any = None) -> Ragged:
        """The conversations as the model's input, on its device.

        limits (Optional[np.ndarray]): Tokens to read of each at most, shape (n,), int64.
        """
        return self.ragged(CONTEXT, *self.text.contexts(conversations, limits))

    def replies(self, texts: Sequence[str], limits: Any = None) -> Ragged:
        """Reply texts as the model's input, on its device; ``limits`` as above."""
        return self.ragged(LABEL, *self.text.labels(texts, limits))

    def ragged(self, field: int, ids: Any, lengths: Any) -> Ragged:
        # A model that names no second field lays out all it reads in one way.
        self.counters.count_tokens(lengths, self.padded[min(field, len(self.padded) - 1)])
        ops = self.model.ops
        return Ragged(ops.asarray2i(ids), ops.asarray1i(lengths))

    # --- metrics ----------------------------------------------------------------

    def report(self) -> Dict[str, Metric]:
        """Loss per example (nats), tokens, padding and truncation since the reset."""
        return self.counters.report(self._text.truncation.report() if self._text else None)

    def reset_metrics(self) -> None:
        self.counters.reset_metrics()
        if self._text is not None:
            self.text.truncation.reset()

    def metrics_state(self) -> Dict[str, Any]:
        """What ``report`` is made of, as JSON values; a subclass may measure more."""
        text = self._text and self._text.truncation.state()
        return {"counters": self.counters.state(), "text": text}

    def set_metrics_state(self, state: Mapping[str, Any]) -> None:
        """Take back what ``metrics_state`` gave."""
        self.counters.restore(state["counters"])
        if self._text is not None:
            self._text.truncation.restore(state["text"])
