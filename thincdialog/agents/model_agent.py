"""The base of agents that answer with a Thinc model, such as rankers and classifiers."""

from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterator,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

import numpy as np
from thinc.api import Model, Optimizer, fix_random_seed
from thinc.types import Floats1d, Floats2d, Ragged

from ..batchers import Lengths
from ..contract import CodeError, error_line, place_in, place_of
from ..data import TextEncoder, Tokenizer
from ..data.text_encoder import Contexts, check_limits, count, counting
from ..data.tokenizers.tokenizer import load_tokenizer
from ..errors import (
    ConfigError,
    DataError,
    DeviceMemoryError,
    DialogError,
    ModelError,
    Problem,
    ProtocolError,
    TrainingError,
)
from ..examples.batch import CONTEXT, LABEL, Batch
from ..layers.first_values import saved_values_follow
from ..layers.uploaded_ids import upload_ids
from ..layers.watched import (
    changed_rows,
    look_at,
    refused_by_layer,
)
from ..layers.word_vectors import TableRows, Words, has_word_vectors, rows_of_words
from ..messages import PARTNER, Message, MessageBatch, column, in_their_places
from ..metrics import Metric
from ..models.gradient_sum import GradientSum
from ..models.parameters import FlatParameters
from ..models.replica import replicate
from ..models.vocabulary_size import set_vocabulary
from ..models.weights_file import read_weights, restore_dimensions, write_weights
from ..ops.device_memory import gpu_memory_error, is_out_of_memory
from ..ops.devices import on_own_device, upload
from ..ops.dialog_ops import exact_products
from ..ops.later import Later, Number
from ..protocol import (
    NO_STEP,
    Learner,
    Observations,
    ReadingOptions,
    StepReport,
)
from ..teachers import Teacher
from .beginnings import Carried, begin_from
from .collating import Collate, put_together
from .conversation import ConversationAgent
from .judged import RETURNED, Inputs, Judged
from .single_pass import surveyed
from .tally import REPORTED, Tally, not_finite

ModelAgentT = TypeVar("ModelAgentT", bound="ModelAgent")


def no_layer(name: str, given: Optional[Callable]) -> Optional[Callable]:
    """Return a function that was passed to an agent, after a check that it is not a layer.

    name (str): Name of the argument.
    given (Optional[Callable]): The function, or None.
    RAISES (ValueError): If it is a layer. (Layers can be called, so they would fail only later.)
    """
    if isinstance(given, Model):
        raise ValueError(
            f"{name} is the layer '{given.name}', expected a registered {name} or null"
        )
    return given


class ModelAgent(ConversationAgent, Learner):
    """Base of the agents that train a Thinc model. A subclass defines the settings collected from
    the training data (``survey``), a sample input to initialize the model with (``sample``), the
    model's input for a batch (``read``), the loss of its output (``judge``) and the replies
    (``answer``). This class does the rest: gradients, updates, counts, checks and saving.

    model (Model): A model with the input and output that the subclass expects.
    collate (Optional[Collate]): Builds the model's input from a batch. If None, the subclass's
        static method ``collate`` is used, if it has one; otherwise the model reads the contexts'
        tokens.
    use_reply (str): Which text the history keeps as the agent's own turns (see
        ``ConversationAgent``); with "model", training adds no turns of the agent.
    **text_options (Any): Arguments of the ``TextEncoder``.
    RAISES (ValueError): If a value is out of range.
    """

    returns = {**Learner.returns, **RETURNED}
    needs_text = True
    can_truncate = True
    has_gradient = True
    reported = REPORTED
    # A batch with one training example, set only while the weights are allocated.
    _first: Optional[Batch] = None

    def __init__(
        self,
        model: Model,
        *,
        collate: Optional[Collate] = None,
        use_reply: str = "label",
        **text_options: Any,
    ):
        check_limits(**text_options)
        super().__init__(history_size=text_options.get("history_size", -1), use_reply=use_reply)
        self.model = model
        # A subclass may define it as a static method.
        self.collate = no_layer("collate", collate or getattr(type(self), "collate", None))
        self.text_options = text_options
        self.tally = Tally()
        self._text: Optional[TextEncoder] = None
        self._parameters: Optional[FlatParameters] = None
        self.padded = self.padded_fields()

    @property
    def parameters(self) -> FlatParameters:
        """All weights and gradients, in two flat vectors.

        RAISES (ProtocolError): Before ``initialize`` or ``from_disk``.
        """
        if self._parameters is None:
            raise ProtocolError(f"{self.id} has no weights yet: call initialize() or from_disk().")
        return self._parameters

    @property
    def weights(self) -> Floats1d:
        """All weights, as the vector that the model's parameters are views of."""
        return self.parameters.values

    @property
    def tokenizer(self) -> Optional[Tokenizer]:
        """Tokenizer of the agent; None if it reads no text."""
        return None if self._text is None else self._text.tokenizer

    @property
    def text_encoder(self) -> Optional[TextEncoder]:
        return self._text if self.needs_text else None

    @property
    def n_weights(self) -> int:
        return self.parameters.n_parameters

    @property
    def n_gathered(self) -> int:  # type: ignore[override]
        """Number of examples trained on since the last update."""
        return self.tally.examples

    @property
    def text(self) -> TextEncoder:
        """The encoder that turns text into arrays.

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
        """Build the vocabulary, the classes or candidates, and the weights from the training data.

        RAISES (ConfigError): If the agent reads text and there is no tokenizer.
        """
        words: Optional[Words] = None
        if tokenizer is not None and tokenizer.needs_texts:
            build = surveyed(self.survey, train, lambda texts: tokenizer.build(texts, progress))
            if self.needs_text:
                build()
        elif tokenizer is not None and has_word_vectors(self.model):
            words = surveyed(self.survey, train, tokenizer.word_ids)()
        else:
            self.survey(train)
            self.check_tokenizer(tokenizer)
        self.beginning = self.draw_weights(train, tokenizer, seed, words=words).lines

    def initialize_from(
        self,
        folder: Path,
        train: Teacher,
        *,
        tokenizer: Optional[Tokenizer] = None,
        seed: int = 0,
        progress: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Start from a saved model of any agent: use its tokenizer, its classes or candidates
        (``carry_over``), and the weights that fit.

        RAISES (ConfigError): If the agent reads text and there is no tokenizer.
        """
        self.beginning = begin_from(folder, self, train, tokenizer, seed, progress)

    def carry_over(self, state: Mapping[str, Any]) -> Carried:
        """Merge the classes or candidates of a saved agent into those that ``survey`` found.

        state (Mapping[str, Any]): The ``state`` of the saved agent, which may be of another class.
        """
        return Carried()

    def check_tokenizer(self, tokenizer: Optional[Tokenizer]) -> None:
        """Check that there is a tokenizer if the agent needs one.

        RAISES (ConfigError): If the agent reads text and there is no tokenizer.
        """
        if self.needs_text and tokenizer is None and self.collate is None:
            hint = 'add it: @tokenizers = "thincdialog.Words.v1"'
            text = "[agent] reads text, but there is no [tokenizer]"
            raise ConfigError([Problem("", text, hint)])

    def draw_weights(
        self,
        train: Teacher,
        tokenizer: Optional[Tokenizer],
        seed: int,
        coming: Collection[Tuple[int, ...]] = (),
        words: Optional[Words] = None,
    ) -> TableRows:
        """Initialize the weights.

        coming (Collection[Tuple[int, ...]]): Shapes of the parameters that a saved model will
            replace.
        words (Optional[Words]): The tokenizer's ``word_ids`` of the training texts, if they are
            known.
        RETURNS (TableRows): Helper of initializers that fill tables, with their lines for the user.
        """
        self.set_tokenizer(tokenizer)
        # Thinc's initializers draw from the global random generators.
        fix_random_seed(seed)

        def find() -> Words:
            if words is None and tokenizer is not None:
                return tokenizer.word_ids(train.texts())
            return words or {}

        if self.collate is not None:
            first = list(islice(train.examples(), 1))
            if not self.takes_batches:  # Its own ``observe`` may add fields that it collates.
                first = [self.clone().observe(message) for message in first]
            self._first = Batch.of(first)
        with rows_of_words(find, coming) as rows:
            self.lay_out_weights()
        self._first = None
        return rows

    def set_tokenizer(self, tokenizer: Optional[Tokenizer]) -> None:
        """Use a built tokenizer, and set the size of the model's vocabulary to that of the
        tokenizer."""
        self._text = None
        if tokenizer is not None:
            self._text = TextEncoder(tokenizer, **self.text_options)
            set_vocabulary(self.model, tokenizer.n_ids, tokenizer.ranges)

    def lay_out_weights(self) -> None:
        """Allocate the weights, and move them into one vector.

        RAISES (ConfigError): If the model cannot process the agent's input.
        """
        upload_ids(self.model)
        sample = self.sample()
        try:
            self.model.initialize(*sample)
        except Exception as error:
            # The error already names its place.
            if isinstance(error, DialogError) or place_in(error):
                raise
            if isinstance(error, MemoryError) or is_out_of_memory(error):
                raise  # The command line has a message for it.
            # Layers raise many kinds of errors for input that they cannot process.
            reads = f"text (as {type(sample[0]).__name__})" if self.needs_text else "features"
            reads = "the result of the collate function" if self.collate is not None else reads
            text = f"[agent.model] cannot be set up to read {reads}: {error_line(error)}"
            place = look_at(self.model)
            look = f"look at {place}; " if place else ""
            raise ConfigError([Problem("", text, f"{look}--traceback shows where")]) from error
        self._parameters = FlatParameters(self.model)
        self.weights_changed()  # Values may have been computed from earlier weights.
        self.reset_metrics()  # The sample is not part of the data.

    def replica(self: ModelAgentT) -> ModelAgentT:
        """Make a copy of the agent for another worker, which may run at the same time. The copy
        shares the weights and has its own copies of everything that changes in training or
        answering (ops, gradients, counts, conversation). A subclass with more such state extends
        this method.

        RAISES (ProtocolError): Before ``initialize`` or ``from_disk``.
        """
        replica = self.clone()
        replica.model = replicate(self.model)
        replica._parameters = self.parameters.replica(replica.model)
        replica.tally = Tally()
        if self._text is not None:
            replica._text = self._text.replica()
        return replica

    def __getstate__(self) -> Dict[str, Any]:
        # For pickle and copy.deepcopy. The data gathered for a step is left out, and so are the
        # values in the layers, because views of the weights would become copies.
        state = {**self.__dict__, "tally": Tally(), "_text": self.tokenizer}
        if self._parameters is not None:
            state["model"] = replicate(self.model, has_values=False)
        return state

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._parameters is not None:
            self._parameters = self._parameters.replica(self.model)
        self.set_tokenizer(state["_text"])

    def sample(self) -> Sequence[Any]:
        """Return the arguments of ``model.initialize``: a tiny input (and output)."""
        raise NotImplementedError

    def to_disk(self, folder: Path) -> None:
        # First, because an agent without weights has no state to write, either.
        write_weights(folder, self.model, self.parameters)
        super().to_disk(folder)
        if self.tokenizer is not None:
            (folder / "tokenizer").mkdir(exist_ok=True)
            self.tokenizer.to_disk(folder / "tokenizer")

    def from_disk(self, folder: Path, *, tokenizer: Optional[Tokenizer] = None) -> None:
        super().from_disk(folder)
        if tokenizer is not None:
            load_tokenizer(tokenizer, folder)
        self.set_tokenizer(tokenizer)
        restore_dimensions(folder, self.model)
        try:
            self.check_tokenizer(tokenizer)
            with saved_values_follow():
                self.lay_out_weights()
        except MemoryError as error:
            text = f"config.cfg and layout.json ask for more memory than is free: {error}"
            raise ModelError(f"{folder}  {text}") from error
        except ConfigError as error:
            text = f"config.cfg and layout.json do not fit: {error.problems[0].text}"
            raise ModelError(f"{folder}  {text}. Save the model again.") from error
        read_weights(folder, self.parameters)

    # --- acting -----------------------------------------------------------------

    @on_own_device
    def batch_act(self, observations: Observations) -> Sequence[Message]:
        """Answer many conversations at once, or train on those that have ``labels``."""
        if not observations:
            return []
        batch = Batch.of(observations)
        labelled = batch.labelled(self.has_label_sets)
        is_training = len(labelled.rows) > 0
        with self._with_remedies(batch, is_training), counting(self.tally.counts):
            if not is_training:
                answers = self.answer(batch)
                self.tally.add_answers(column(answers, "loss"))
                return answers
            replies = self.learn(labelled)
        places: Sequence[int] = ()
        if replies is not None and labelled is not batch:
            places = batch.labelled_places(self.has_label_sets).tolist()
        return in_their_places(replies, places, len(batch.rows))

    @contextmanager
    def _with_remedies(self, batch: Batch, is_training: bool) -> Iterator[None]:
        """Add a remedy to errors, or the place of the custom layer that they come from.

        RAISES (DeviceMemoryError): If the memory of a GPU is full.
        """
        try:
            yield
        except Exception as error:
            if is_out_of_memory(error):
                raise self._too_large(batch, is_training) from error
            # An error about missing rows is often raised far from the custom layer that lost them.
            if isinstance(error, DialogError) or place_in(error):
                raise
            lost, place = changed_rows(self.model), look_at(self.model)
            if lost is None and place:  # Thinc's layers raise many kinds of errors.
                lost = CodeError(f"{error_line(error)}: look at {place}; --traceback shows where")
            refused = refused_by_layer(error)
            if lost is None and refused is not None:
                raise ConfigError([refused]) from error
            if lost is None:
                raise
            raise lost from error

    def _too_large(self, batch: Batch, is_training: bool) -> DeviceMemoryError:
        """Make the error for a batch that does not fit into the memory of a GPU."""
        ids, longest = batch.ids(), int(self.batch_lengths(batch).counts.max())
        shown = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
        size = "a smaller width or max_context in [agent]"
        remedy = (
            f"[evaluation.world.batcher], {size}, or use fewer candidates or the CPU (--gpu-id -1)"
        )
        if is_training:
            remedy = f"[world.batcher] (training.accumulate_gradient adds batches up), or {size}"
        many = f"a batch of {len(ids):,} examples of up to {longest:,} tokens"
        return gpu_memory_error(f"{many} ({shown}). Set a smaller {remedy}.")

    def read(self, batch: Batch) -> Optional[Inputs]:
        """Return the model's input for a batch to train on, in which all examples have ``labels``;
        None if there is nothing to train on. This method must not change the agent: counts go to
        the caller's ``counting`` block.

        RAISES (DataError): If the model cannot be trained on an example.
        """
        raise NotImplementedError

    def judge(self, Y: Any, inputs: Inputs) -> Judged:
        """Return the gradient of the model's output, and the losses.

        Y (Any): The model's output for ``inputs.X``.
        inputs (Inputs): The value that ``read`` returned.
        """
        raise NotImplementedError

    def learn(self, batch: Batch) -> Optional[Sequence[Message]]:
        """Add the gradient of a batch to the current step (see ``Learner``).

        RAISES (TrainingError): If the loss is not finite.
        """
        inputs = self.read(batch)
        if inputs is None:
            return None
        Y, backprop = self.model.begin_update(inputs.X)
        judged = self.judge(Y, inputs)
        ids = inputs.batch.ids
        loss, n_right = (self._number(each) for each in (judged.loss, judged.n_right))
        if isinstance(loss, Later):  # The error is raised when the loss is read.
            loss = Later(judged.loss, lambda: self._not_finite_error("loss", ids))
        elif loss - loss != 0.0:  # inf and nan
            raise not_finite("loss", ids())
        backprop(judged.gradient)
        self.tally.add_batch(inputs.batch)
        self.tally.add_losses(loss, judged.weight, judged.unit)
        self.tally.add_judged(n_right, judged.n_judged)
        if inputs.places is None:
            return judged.replies
        return in_their_places(judged.replies, inputs.places, len(batch.rows))

    def self_observe(self, message: Message) -> None:
        observation = self.observation or Message()
        # In training, the model's reply is not part of the conversation.
        if self.use_reply == "model" and observation.get("labels"):
            message = Message((name, cell) for name, cell in message.items() if name != "text")
        super().self_observe(message)

    def class_scores(self, batch: Batch) -> Floats2d:
        """Return the model's scores of the classes for a batch, computed with exact matrix
        products; shape (n_examples, n_classes).

        RAISES (CodeError, ConfigError): If the scores have another shape.
        """
        with exact_products(self.model.ops):
            scores: Floats2d = self.model.predict(self.inputs(batch))
        self.check_scores(scores, (len(batch.rows), len(self.classes)))
        return scores

    def check_scores(self, scores: Any, shape: Tuple[int, int]) -> None:
        """Check the shape of the model's scores.

        RAISES (CodeError, ConfigError): If the scores have another shape.
        """
        if scores.shape != shape:
            text = f"[agent.model] returns scores of shape {scores.shape}, expected {shape}"
            place = look_at(self.model)
            hint = "one row for each example" + (f"; look at {place}" if place else "")
            problem = Problem("", text, hint)
            raise changed_rows(self.model) or ConfigError([problem])

    def _number(self, value: Any) -> Number:
        """Return a float, or a ``Later`` for a number on a device, so that the host need not wait
        for it."""
        is_on_host = self.model.ops.xp is np or isinstance(value, (int, float))
        return float(value) if is_on_host else Later(value, ValueError)

    def judge_scores(
        self,
        scores: Floats2d,
        batch: Batch,
        loss: Callable,
        right: np.ndarray,
        other: Optional[np.ndarray],
        texts: Callable[[], Sequence[str]],
        allowed: Optional[np.ndarray] = None,
    ) -> Judged:
        """Compute the result of ``judge`` for a model that scores texts and replies with the best
        one.

        scores (Floats2d): Scores, shape (n_examples, n_texts).
        loss (Callable): A registered loss.
        right (np.ndarray): Index of each example's right text, shape (n_examples,).
        other (Optional[np.ndarray]): Third argument of the loss.
        texts (Callable[[], Sequence[str]]): Returns the texts; called only when a reply is read,
            which is rare.
        allowed (Optional[np.ndarray]): Which texts may be the reply, bools with the shape of the
            scores; None if all may.
        """
        ops, xp = self.model.ops, self.model.ops.xp
        (targets,) = upload(ops, right)
        given = None if other is None else upload(ops, other)[0]
        best: Any = scores
        if allowed is not None:
            best = xp.where(*upload(ops, allowed), scores, xp.float32(-np.inf))
        best = best.argmax(axis=1)  # Before the loss, which may overwrite the scores.
        gradient, losses = loss(scores, targets, given)
        total, n_right = losses.sum(), (best == targets).sum()

        def replied() -> Sequence[str]:
            among = texts()
            return [among[number] for number in best.tolist()]

        columns = {"text": replied, "loss": losses.tolist}
        replies = MessageBatch(columns, len(best), is_on_device=xp is not np)
        n = len(batch.rows)
        return Judged(gradient, total, n, "examples", n_right, n, replies)

    @on_own_device
    def begin_microbatch(self, seed: int, step: int, number: int) -> None:
        """Seed all random draws for the next batch (dropout) with these numbers. Keep the gradients
        of the step's microbatches separate, to sum them in a fixed order."""
        ops: Any = self.model.ops
        ops.seed(seed, step, number)
        self.parameters.seed(seed, step, number)
        tally = self.tally
        if not number or not (tally.examples or tally.microbatches):
            tally.microbatches = None
            return
        parameters = self.parameters
        if tally.microbatches is None:
            tally.microbatches = GradientSum(parameters.ops, parameters.segments)
        with self._with_memory_remedy():
            tally.microbatches.add(parameters.dense_gradients, parameters.take_rows())

    @contextmanager
    def _with_memory_remedy(self) -> Iterator[None]:
        """Add a remedy to the error if a step runs out of memory after its backward passes.

        RAISES (DeviceMemoryError): If a GPU's memory is full.
        """
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            text = f"the step of [training.optimizer] on {self.n_weights:,} weights. Set "
            if self.tally.microbatches is not None:
                text = f"the gradients of several batches, of {self.n_weights:,} weights each. "
                text += "Set a smaller training.accumulate_gradient (1 needs no sums), "
            text += "a smaller width or vocabulary, or an optimizer with less state"
            raise gpu_memory_error(f"{text} (thincdialog.SparseSGD.v1).") from error

    @on_own_device
    def _not_finite_error(
        self, what: str, ids: Callable[[], Sequence[Optional[str]]]
    ) -> TrainingError:
        """Make the error for a loss or gradient that a device reports after the step."""
        return not_finite(what, ids(), self.parameters.n_skipped)

    @on_own_device
    def give_up(self) -> None:
        self.parameters.clear_gradients()
        self.tally.clear()

    def hand_over(self) -> Tuple[StepReport, Callable[[], Sequence[Optional[str]]]]:
        ids = self.tally.ids_later()
        return self.tally.close_step(0.0), ids

    def gathered_loss(self) -> float:
        return self.tally.mean_loss()

    @on_own_device
    def update(self, optimizer: Optimizer) -> StepReport:
        """Apply the mean gradient of the losses since the last update, and clear it.

        RAISES (CodeError): If there is a gradient, but no example was counted.
        """
        tally, parameters = self.tally, self.parameters
        if not tally.examples:
            self._check_counted()
            self.reset_metrics()
            return NO_STEP
        with self._with_memory_remedy():
            if tally.microbatches is not None:
                tally.microbatches.add(parameters.dense_gradients, parameters.take_rows())
                parameters.give_rows(tally.microbatches.take(parameters.dense_gradients))
            later = partial(self._not_finite_error, "gradient", tally.ids_later())
            try:
                norm = parameters.update(optimizer, 1.0 / tally.learned.weight, later)
            except TrainingError:
                error = not_finite("gradient", tally.ids)
                self.give_up()
                raise error from None
            self.weights_changed()
            return tally.close_step(norm)

    def _check_counted(self) -> None:
        if self.parameters.gradients.any():
            raise CodeError(
                f"{place_of(type(self).learn)} left a gradient, but counted no example, so nothing "
                "would be learned: override read() and judge() instead of learn()."
            )

    def reading(self) -> ReadingOptions:
        options = super().reading()._replace(encoder=self.text_options)
        if self.collate is not None:
            return options._replace(other_fields=True)
        return options._replace(n_features=0)

    def use_weights(self, weights: Floats1d) -> None:
        self.parameters.move(weights)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Compute exact matrix products in the block. Cached values are dropped before and after
        it, because they depend on the precision."""
        self.weights_changed()
        with exact_products(self.model.ops):
            yield
        self.weights_changed()

    # --- text -------------------------------------------------------------------

    def padded_fields(self) -> Tuple[bool, ...]:
        """Return, for each field of ``batch_lengths``, whether the model pads it to a rectangle."""
        return (has_rectangles(self.model),)

    def batch_lengths(self, observations: Observations) -> Lengths:
        """Count the tokens that the model will read of each observation (see ``Agent``); 1 for each
        if it reads no text."""
        if self._text is None and (self.collate is not None or not self.needs_text):
            return Lengths(np.ones((len(observations), 1), dtype=np.int64), (False,))
        lengths = self.text.context_lengths(Batch.of(observations))
        return Lengths(lengths[:, None], self.padded)

    def inputs(self, batch: Batch) -> Any:
        """Return the model's input for a batch."""
        if self.collate is None:
            return self.contexts(batch)
        return self.collated(batch, None if self._text is None else self.contexts(batch))

    def collated(self, batch: Batch, tokens: Optional[Ragged]) -> Any:
        """Return the model's input for a batch whose contexts are already tokenized."""
        if self.collate is None:
            return tokens
        return put_together(self.collate, batch, tokens, self.model.ops)

    def sample_inputs(self) -> Any:
        """Return an input to initialize the model with; None if its dimensions are known
        already."""
        if self.collate is None:
            return self.contexts([[(PARTNER, "a")]])
        return None if self._first is None else self.inputs(self._first)

    def contexts(self, conversations: Contexts) -> Ragged:
        """Return the tokens of conversations."""
        return self.ragged(self.text.contexts(conversations), CONTEXT)

    def replies(self, texts: Sequence[str], limits: Any = None) -> Ragged:
        """Return the tokens of replies.

        limits (Optional[np.ndarray]): Maximum number of tokens of each text, shape (n,), int64.
        """
        return self.ragged(self.text.labels(texts, limits), LABEL)

    def ragged(self, encoded: Tuple[Any, Any], field: int) -> Ragged:
        """Return encoded texts of a field as the model's input: a Ragged of ids on the host. Count
        their tokens and their cells (tokens with padding)."""
        arrays: Any = [np.asarray(array, dtype="i") for array in encoded]
        ids, lengths = arrays
        count("tokens", len(ids))
        # A model without a second field lays out all its input in the same way.
        is_padded = self.padded[min(field, len(self.padded) - 1)] and len(ids)
        count("cells", int(lengths.max()) * len(lengths) if is_padded else len(ids))
        return Ragged(ids, lengths)

    # --- metrics ----------------------------------------------------------------

    def report(self) -> Dict[str, Metric]:
        """Return the metrics since the reset: loss per example (nats), tokens, padding, truncation,
        and in training the accuracy, if the agent measures it."""
        return self.tally.report()

    def reset_metrics(self) -> None:
        self.tally.reset()


def has_rectangles(model: Model) -> bool:
    """Return whether any layer pads its input to the longest row: a layer with the attribute
    "is_padded", or Thinc's ``with_padded``, which is recognised by its name."""
    return any("padded" in node.name or "is_padded" in node.attrs for node in model.walk())


def labelled_examples(
    train: Teacher, setting: str, given: Optional[Sequence[str]]
) -> Iterator[Message]:
    """Yield all examples of the training data, and check their labels.

    setting (str): Name of the agent's setting that lists all labels.
    given (Optional[Sequence[str]]): The labels that it lists; None for any labels.
    RAISES (DataError): If a label is not listed, or no example has a label.
    """
    known, has_labels = None if given is None else set(given), False
    for example in train.examples():
        for label in example.all_labels:
            if known is not None and label not in known:
                text = f"example {example['id']} has the label {label!r}, which is not among the "
                text += f"{setting} in [agent]. Add it there, or leave '{setting}' out."
                raise DataError(train.order.origin, text)
            has_labels = True
        yield example
    if not has_labels:
        raise no_labels(train)


def no_labels(train: Teacher) -> DataError:
    """Make the error for training data without labels."""
    return DataError(
        train.order.origin, "no training example has a label: there is nothing to learn from."
    )
