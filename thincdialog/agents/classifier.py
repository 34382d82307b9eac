"""An agent that answers with one of a fixed set of classes."""

from math import nan
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
from thinc.api import Model, add, concatenate

from ..data import Tokenizer
from ..errors import ConfigError, DataError, Problem
from ..examples.batch import Batch
from ..files.json_file import number_in, numbers_in, texts_in, whole_number_in
from ..formats.wording import short
from ..layers.parts import Parts
from ..losses.class_softmax import ClassSoftmax
from ..messages import Message, MessageBatch
from ..models.committee import Committee
from ..ops.devices import upload
from ..protocol import Observations, ReadingOptions
from ..registry import registry
from ..teachers import Teacher
from .beginnings import Carried
from .collating import Collate
from .judged import Inputs, Judged
from .model_agent import ModelAgent, labelled_examples, no_layer

# Modules of Thinc's layers that return probabilities, and modules of layers that combine the
# outputs of all their sublayers. Any other layer with sublayers returns the output of the last one.
SOFTMAX = ("thinc.layers.softmax", "thinc.layers.softmax_activation")
SIDE_BY_SIDE = (
    add.__module__, concatenate.__module__, Parts.__module__, Committee.__module__
)  # fmt: skip
# Metrics of the dev data for which a threshold can be chosen; "" if the threshold is a number.
WANTED = ("", "precision", "recall")
# Lowest temperature. It makes nearly all probabilities 0.0 or 1.0.
LOWEST = 0.01


@registry.agents("thincdialog.Classifier.v1")
class ClassifierAgent(ModelAgent):
    """Classifies conversations: answers with the class that has the highest probability. If some
    of the message's ``label_candidates`` are classes, only these are compared.

    model (Model): Maps conversations (Ragged) or features (Floats2d) to logits, shape (n_examples,
        n_classes); or to probabilities, if it ends in Thinc's ``Softmax``.
    loss (Optional[Callable]): A registered loss; softmax cross-entropy if None.
    classes (Optional[List[str]]): All classes; from the training labels if None.
    class_weights (Union[Dict[str, float], str, None]): Weight in the loss of the examples of each
        class (1.0 for classes not listed), or "balanced" for weights inverse to the class
        frequencies, with mean 1.0 over the training examples.
    reject_class (Optional[str]): Reply if the best class is less probable than ``threshold``;
        "unknown" if None. It may be one of the classes, such as "oos".
    threshold (Union[float, str]): Lowest probability of an answer, 0.0 to 1.0; or a metric to reach
        on the dev data, for which the threshold is chosen at the end of training: "precision:0.95"
        (of the texts that are answered) or "recall:0.6" (of the texts out of scope, whose label is
        no class or is ``reject_class``).
    history_size (int): Number of turns to classify, including the last one; -1 for all.
    max_context (int): Maximum number of tokens of these turns, of which the last are kept; 0 for no
        limit.
    delimiter (bool): Whether a ``<turn>`` token separates turns.
    speaker_tokens (bool): Whether each turn starts with a token for its speaker.
    segments (str): Unit that the model can distinguish: "turn" or "line".
    use_reply (str): Which text the history keeps as the agent's own turns: "label", "model" or
        "none" (the default, because classes are rarely said aloud).
    collate (Optional[Callable]): A registered function that builds the input of the model from a
        batch, such as texts and images; if None, the input is the texts or the ``features``.
    RAISES (ValueError): If threshold is out of range, or the model ends in a softmax that is not
        Thinc's ``Softmax``.
    """

    id = "classifier"
    has_classes = True

    def __init__(
        self,
        model: Model,
        loss: Optional[Callable] = None,
        classes: Optional[List[str]] = None,
        class_weights: Union[Dict[str, float], str, None] = None,
        reject_class: Optional[str] = None,
        threshold: Union[float, str] = 0.0,
        history_size: int = 1,
        max_context: int = 256,
        delimiter: bool = True,
        speaker_tokens: bool = False,
        segments: Literal["turn", "line"] = "turn",
        use_reply: Literal["label", "model", "none"] = "none",
        collate: Optional[Collate] = None,
    ):
        wanted, _, share = str(threshold).rpartition(":")
        if wanted not in WANTED or not 0.0 <= _number(share) <= 1.0:
            text = f"threshold = {threshold!r}, expected a number from 0.0 to 1.0, or a goal on dev"
            raise ValueError(f"{text} such as 'precision:0.95' or 'recall:0.6'")
        if isinstance(class_weights, str) and class_weights != "balanced":
            raise ValueError(f"class_weights = '{class_weights}', expected 'balanced' or a section")
        if classes is not None and len(set(classes)) < 2:
            raise ValueError("classes needs at least two different classes")
        last = list(_last_layers(model))
        self.has_softmax = len(last) == 1 and last[0].attrs.get("softmax_normalize", False)
        if not self.has_softmax and any(each._func.__module__ in SOFTMAX for each in last):
            raise ValueError(
                "the model ends in a softmax, but logits are expected: remove it (only one "
                "Softmax.v2 may end the whole model; a member's, or softmax_activation.v1, may not)"
            )
        super().__init__(
            model,
            collate=collate,
            history_size=history_size,
            max_context=max_context,
            delimiter=delimiter,
            speaker_tokens=speaker_tokens,
            segments=segments,
            use_reply=use_reply,
        )
        self.loss = no_layer("loss", loss) or ClassSoftmax()
        self.given_classes = classes
        self.class_weights = class_weights
        self.reject_class = reject_class or "unknown"
        self.wanted = (wanted, float(share))
        self.rejects_below = None if wanted else float(share)
        self.temperature = 1.0
        self.classes: List[str] = []
        self.class_counts: List[int] = []  # Counts of training examples, set only in training.
        self.n_features: Optional[int] = None

    @property
    def needs_text(self) -> bool:  # type: ignore[override]
        """Whether the input is text, that is, the data has no ``features``."""
        return self.n_features is None

    @property
    def needs_dev(self) -> bool:  # type: ignore[override]
        """Whether the threshold is chosen on the dev data."""
        return bool(self.wanted[0])

    def reachable(self, example: Message) -> Collection[str]:
        own = [text for text in example.get("label_candidates") or () if text in self._index]
        can_reject = self.rejects_below != 0.0
        return [*(own or self.classes), *([self.reject_class] if can_reject else [])]

    def reading(self) -> ReadingOptions:
        options = super().reading()._replace(labels=self.given_classes)
        if self.collate is not None:
            return options
        return options._replace(n_features=self.n_features or 0)

    # --- classes and settings -----------------------------------------------------

    def survey(self, train: Teacher) -> None:
        counts: Dict[str, int] = dict.fromkeys(self.given_classes or (), 0)
        examples = labelled_examples(train, "classes", self.given_classes)
        for number, example in enumerate(examples):
            if self.collate is None:
                self._survey_input(example, number == 0, train.order.origin)
            labels = example.all_labels
            if len(set(labels)) > 1:
                known = ", ".join(map(short, labels))
                found = f"example {example['id']} has {len(labels)} labels ({known})"
                text = "a classifier learns one class per text. Leave one, or let [agent] learn all"
                text += " labels: @agents = thincdialog.MultiLabel.v1"
                raise DataError(train.order.origin, f"{found}: {text}.")
            for label in labels[:1]:
                counts[label] = counts.get(label, 0) + 1
        classes = list(self.given_classes or sorted(counts))
        if len(classes) < 2:
            raise DataError(
                train.order.origin,
                f"the training data has only one class, {classes[0]!r}: there is nothing to "
                "tell apart. Check the label field of the data.",
            )
        self.class_counts = [counts[name] for name in classes]
        self._set_classes(classes, self._weights(classes, counts))

    def carry_over(self, state: Mapping[str, Any]) -> Carried:
        """Put the classes of the saved classifier first, followed by the new classes of the data.

        RAISES (ConfigError): If ``classes`` in the config lacks a class of the saved classifier.
        """
        if not state.get("classes"):
            return Carried()
        before = texts_in(state, "classes")
        counts = dict(zip(self.classes, self.class_counts))
        lost = [name for name in before if name not in counts]
        if lost and self.given_classes is not None:
            names = ", ".join(map(repr, lost[:3]))
            text = f"[agent] classes lacks {len(lost)} that the model of init_from knows: {names}"
            raise ConfigError([Problem("", text, "add them, or leave 'classes' out")])
        new = [name for name in self.classes if name not in set(before)]
        classes = [*before, *new]
        counts = {name: counts.get(name, 0) for name in classes}
        self.class_counts = list(counts.values())
        self._set_classes(classes, self._weights(classes, counts))
        line = f"classes: its {len(before):,}"
        line += f" ({len(lost):,} without an example here)" if lost else ""
        if new:
            more = ", ..." if len(new) > 3 else ""
            line += f", and {len(new):,} new: {', '.join(map(repr, new[:3]))}{more}"
        return Carried([line], (len(before), len(classes)))

    def _survey_input(self, example: Message, is_first: bool, data: str) -> None:
        """Check that all examples have the same kind of input: text, or the same number of
        features."""
        features, who = example.get("features"), f"example {example['id']}"
        self._check_features(who, features, data, is_first)
        if features is not None and example.get("text"):
            found = f"{who} has both features and a text ({short(example['text'])})"
            text = "a classifier reads one of them. Leave one out, or give [agent] a collate"
            raise DataError(data, f"{found}: {text} function.")

    def _check_features(self, who: str, features: Any, data: str, is_first: bool = False) -> None:
        """Check that an example has one row of as many features as the first one; or none."""
        n_features = None if features is None else _n_features(features)
        if features is not None and n_features is None:
            text = "expected one row of numbers. Flatten them, or set [agent.collate]"
            raise DataError(data, f"{who} has features of several dimensions: {text}.")
        if is_first:
            self.n_features = n_features
        if n_features != self.n_features:
            raise DataError(data, f"{who} has {n_features or 'no'} features, {self._expected()}")

    def _expected(self) -> str:
        if self.n_features is None:
            return "but the first has none: a classifier reads text or features, not both."
        return f"expected {self.n_features}: this classifier reads features, not text."

    def _weights(self, classes: List[str], counts: Dict[str, int]) -> Optional[List[float]]:
        """Return the weight of each class's examples in the loss; None if all weights are 1."""
        if self.class_weights is None:
            return None
        if self.class_weights == "balanced":
            seen = sum(1 for name in classes if counts[name])
            total = sum(counts.values())
            return [total / (seen * counts[name]) if counts[name] else 0.0 for name in classes]
        given: Dict[str, float] = self.class_weights  # type: ignore[assignment]
        unknown = sorted(set(given) - set(classes))
        if unknown:
            text = f"[agent.class_weights] has keys that are not classes: {', '.join(unknown)}"
            hint = "use labels of the training data (a fold may lack the rare ones)"
            raise ConfigError([Problem("", text, hint)])
        return [float(given.get(name, 1.0)) for name in classes]

    def _set_classes(self, classes: List[str], weights: Optional[List[float]]) -> None:
        self.classes = classes
        self.loss_weights = weights
        self._index = {name: index for index, name in enumerate(classes)}
        # The labels of the last batch's store, and the class number of each label.
        self._class_numbers: Tuple[Sequence[str], np.ndarray] = ((), np.zeros(0, dtype=np.int64))

    def state(self) -> Dict[str, Any]:
        return {
            "classes": self.classes,
            "weights": self.loss_weights,
            "n_features": self.n_features,
            "temperature": self.temperature,
            "threshold": self.rejects_below if self.needs_dev else None,
        }

    def set_state(self, state: Dict[str, Any]) -> None:
        classes, weights, n_features = texts_in(state, "classes"), state["weights"], None
        if len(set(classes)) < max(2, len(classes)):
            raise ValueError("there are too few classes, or one occurs twice")
        if weights is not None:
            weights = numbers_in(state, "weights")
            if len(weights) != len(classes) or min(weights) < 0:
                raise ValueError("the weights do not match the classes")
        if state["n_features"] is not None:
            n_features = whole_number_in(state, "n_features", 1)
        self._set_classes(classes, weights)
        self.n_features = n_features
        # Models saved by older versions have neither of the two.
        self.temperature = number_in({"temperature": 1.0, **state}, "temperature", LOWEST)
        if self.needs_dev and state.get("threshold") is not None:
            self.rejects_below = number_in(state, "threshold")

    def set_tokenizer(self, tokenizer: Optional[Tokenizer]) -> None:
        super().set_tokenizer(tokenizer if self.needs_text else None)
        for node in self.model.walk():
            if "class_names" in node.attrs:
                node.attrs["class_names"] = self.replies(self.classes)

    def sample(self) -> Sequence[Any]:
        ops, n_features = self.model.ops, self.n_features
        X = self.sample_inputs() if n_features is None else ops.alloc2f(1, n_features)
        return X, ops.alloc2f(1, len(self.classes))

    # --- acting ---------------------------------------------------------------------

    def read(self, batch: Batch) -> Inputs:
        return Inputs(batch, self.inputs(batch), self.targets(batch).astype("i"))

    def judge(self, Y: Any, inputs: Inputs) -> Judged:
        self.check_scores(Y, (len(inputs.batch.rows), len(self.classes)))
        if self.has_softmax:
            Y = self._logits(Y)  # Thinc's Softmax expects the gradient of the logits, too.
        weights = None if self.loss_weights is None else np.array(self.loss_weights, dtype="f")
        return self.judge_scores(
            Y, inputs.batch, self.loss, inputs.targets, weights, lambda: self.classes
        )

    def _logits(self, P: Any) -> Any:
        """Return logits that have these probabilities."""
        xp = self.model.ops.xp
        return xp.log(xp.maximum(P, xp.float32(1e-30)))

    def targets(self, batch: Batch) -> Any:
        """Return the number of each example's class. Every example must have ``labels``.

        RETURNS (Ints1d): Class numbers, shape (n_examples,), int64.
        RAISES (DataError): If a label is not one of the classes.
        """
        labels, numbers = self._class_numbers
        if labels is not batch.store.label_texts:
            labels = batch.store.label_texts
            numbers = np.array([self._index.get(text, -1) for text in labels], dtype=np.int64)
            self._class_numbers = labels, numbers
        targets = numbers[batch.label_ids]
        if len(targets) and targets.min() < 0:
            place = int(targets.argmin())
            name, label = batch.ids()[place], batch.first_labels()[place]
            text = f"example {name} has the label {label!r}, which is not among the classes."
            raise DataError("training data", text)
        return targets

    def answer(self, batch: Observations) -> Sequence[Message]:
        batch, ops = Batch.of(batch), self.model.ops
        logits = self.class_scores(batch)
        if self.has_softmax:
            logits = self._logits(logits)
        logits = logits / ops.xp.float32(self.temperature)
        P = ops.to_numpy(ops.softmax(logits))  # (n_examples, n_classes)
        evaluation_losses = self._evaluation_losses(batch, P)
        allowed = self._allowed(batch)
        if not allowed.all():
            masked = ops.xp.where(*upload(ops, allowed), logits, ops.xp.float32(-np.inf))
            P = ops.to_numpy(ops.softmax(masked))
        # A stable sort, so that equally probable classes keep their order.
        order = np.argsort(np.where(allowed, -P, 1.0), axis=1, kind="stable")[:, : self.n_ranked]
        best = P[np.arange(len(P)), order[:, 0]]
        orders = [row[:n] for row, n in zip(order, allowed.sum(axis=1))]
        ranked = [[self.classes[index] for index in row.tolist()] for row in orders]
        of_ranked = [p[row].tolist() for p, row in zip(P, orders)]
        replies = map(self.decide, batch.column("text"), (row[0] for row in ranked), best.tolist())
        columns = {
            "text": list(replies),
            "text_candidates": ranked,
            "candidate_scores": of_ranked,
            "candidate_probabilities": of_ranked,
            "loss": evaluation_losses,
            "probability": best.tolist(),
            "classes": [self.classes] * len(P),
            "probabilities": P.tolist(),
        }
        return MessageBatch(columns, len(batch))

    def _allowed(self, batch: Batch) -> np.ndarray:
        """Return the classes that each example may choose from: those among its candidates, or all
        if none are; bools, shape (n_examples, n_classes)."""
        allowed = np.ones((len(batch), len(self.classes)), dtype=bool)
        if "label_candidates" in batch.store.names:
            for row, texts in zip(allowed, batch.column("label_candidates")):
                chosen = [self._index[text] for text in texts or () if text in self._index]
                row[:] = not chosen
                row[chosen] = True
        return allowed

    def _evaluation_losses(self, batch: Batch, P: Any) -> List[Optional[float]]:
        """Return the loss of each example in nats, None if its class is not known."""
        losses: List[Optional[float]] = []
        for row, labels in zip(P, batch.column("eval_labels")):
            index = self._index.get(labels[0]) if labels else None
            losses.append(None if index is None else -float(np.log(max(row[index], 1e-30))))
        return losses

    def inputs(self, batch: Batch) -> Any:
        """Return the model's input for a batch.

        RAISES (DataError): If an example has another number of features than the training data.
        """
        if self.n_features is None:
            return super().inputs(batch)
        rows = batch.column("features")
        for name, row in zip(batch.ids(), rows):
            self._check_features("the message" if name is None else f"example {name}", row, "data")
        return self.model.ops.asarray2f(np.asarray(np.stack(rows), dtype="f"))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _n_features(features: Any) -> Optional[int]:
    """Return the number of features; None if they are not one-dimensional."""
    shape = getattr(features, "shape", None)
    if shape is not None:
        return shape[0] if len(shape) == 1 else None
    is_row = isinstance(features, Sequence) and not any(hasattr(x, "__len__") for x in features)
    return len(features) if is_row else None


def _last_layers(model: Model) -> Iterator[Model]:
    """Return the layers whose outputs are the model's output, or parts of it."""
    if not model.layers:
        yield model
    is_side_by_side = model._func.__module__ in SIDE_BY_SIDE
    for layer in model.layers if is_side_by_side else model.layers[-1:]:
        yield from _last_layers(layer)
