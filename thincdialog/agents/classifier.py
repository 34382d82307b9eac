"""Answers with one of a fixed set of classes."""

from typing import Any, Callable, Dict, List, Literal, Optional, Sequence, Union

import numpy as np
from thinc.api import Model
from thinc.types import Ragged

from ..batchers import Lengths
from ..columns import RowNumbers
from ..data import Tokenizer
from ..errors import ConfigError, DataError, Problem
from ..losses.class_softmax import ClassSoftmax
from ..messages import PARTNER, Message, MessageBatch, column
from ..metrics import AverageMetric
from ..protocol import Observations
from ..registry import registry
from ..teachers import Teacher
from .conversation import RANKED
from .model_agent import ModelAgent
from .training_labels import first_labels, no_labels


@registry.agents("thincdialog.Classifier.v1")
def make_classifier(
    model: Model,
    loss: Optional[Callable] = None,
    classes: Optional[List[str]] = None,
    class_weights: Union[Dict[str, float], str, None] = None,
    reject_class: Optional[str] = None,
    threshold: float = 0.0,
    history_size: int = 1,
    max_context: int = 256,
    delimiter: bool = True,
    speaker_tokens: bool = False,
    segments: Literal["turn", "line"] = "turn",
    use_reply: Literal["label", "model", "none"] = "none",
) -> "ClassifierAgent":
    """A classifier: the class with the highest probability is the reply.

    model (Model): Conversations (Ragged) or features (Floats2d) to logits, shape
        (n_examples, n_classes).
    loss (Optional[Callable]): A registered loss; softmax cross-entropy if None.
    classes (Optional[List[str]]): All classes; from the training labels if None.
    class_weights (Union[Dict[str, float], str, None]): Weight of each class's
        examples in the loss (1.0 where missing), or "balanced" for weights inverse
        to the classes' frequencies with mean 1.0 over the training examples.
    reject_class (Optional[str]): Reply when the best class is less probable than
        ``threshold``; may be one of the classes or a name of its own.
    threshold (float): Probability, 0.0 to 1.0.
    history_size (int): Turns that are classified, the last one included; -1 for all.
    max_context (int): Tokens of them, the last are kept; 0 for no limit.
    delimiter (bool): Whether a ``<turn>`` token stands between turns.
    speaker_tokens (bool): Whether each turn starts with its speaker's token.
    segments (str): Unit that the model is told of: "turn" or "line".
    use_reply (str): What the history keeps as the agent's own turns; "none", because
        classes are seldom said aloud.
    RAISES (ValueError): If threshold is out of range or stands without reject_class.
    """
    check_options(threshold, reject_class, class_weights, classes)
    return ClassifierAgent(
        model,
        loss=loss or ClassSoftmax(),
        classes=classes,
        class_weights=class_weights,
        reject_class=reject_class,
        threshold=threshold,
        history_size=history_size,
        max_context=max_context,
        delimiter=delimiter,
        speaker_tokens=speaker_tokens,
        segments=segments,
        use_reply=use_reply,
    )


def check_options(
    threshold: float,
    reject_class: Optional[str],
    class_weights: Union[Dict[str, float], str, None],
    classes: Optional[List[str]],
) -> None:
    """See that a classifier's options are sound.

    RAISES (ValueError): If one is not.
    """
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold = {threshold}, but it is a probability: 0.0 to 1.0")
    if threshold and reject_class is None:
        raise ValueError("threshold needs reject_class, the reply below it")
    if isinstance(class_weights, str) and class_weights != "balanced":
        raise ValueError(f"class_weights = '{class_weights}', expected 'balanced' or a section")
    if classes is not None and len(set(classes)) < 2:
        raise ValueError("classes needs at least two different classes")


class ClassifierAgent(ModelAgent):
    """See ``make_classifier``."""

    id = "classifier"
    replies_with_classes = True

    def __init__(
        self,
        model: Model,
        *,
        loss: Callable,
        classes: Optional[Sequence[str]] = None,
        class_weights: Union[Dict[str, float], str, None] = None,
        reject_class: Optional[str] = None,
        threshold: float = 0.0,
        **text_options: Any,
    ):
        super().__init__(model, **text_options)
        self.loss = loss
        self.given_classes = classes
        self.class_weights = class_weights
        self.reject_class = reject_class
        self.threshold = threshold
        self.classes: List[str] = []
        self.class_counts: List[int] = []  # Of training examples; known where it learns.
        self.n_features: Optional[int] = None

    @property
    def needs_text(self) -> bool:  # type: ignore[override]
        """Whether the input is text: not if the data brings ``features``."""
        return self.n_features is None

    # --- what is learnt besides weights -------------------------------------------

    def learn(self, train: Teacher) -> None:
        counts: Dict[str, int] = dict.fromkeys(self.given_classes or (), 0)
        for example in train.examples():
            if example.get("features") is not None:
                self.n_features = len(example["features"])
            for label in example.all_labels[:1]:
                if self.given_classes is not None and label not in counts:
                    raise DataError(
                        train.data_name,
                        f"example {example['id']} has the label {label!r}, which is not among "
                        "the classes in [agent]. Add it there, or leave 'classes' out.",
                    )
                counts[label] = counts.get(label, 0) + 1
        if not any(counts.values()):
            raise no_labels(train)
        classes = list(self.given_classes or sorted(counts))
        if len(classes) < 2:
            raise DataError(
                train.data_name,
                f"the training data has only one class, {classes[0]!r}: there is nothing to "
                "tell apart. Check the label field of the data.",
            )
        self.class_counts = [counts[name] for name in classes]
        self._set_classes(classes, self._weights(classes, counts))

    def _weights(self, classes: List[str], counts: Dict[str, int]) -> Optional[List[float]]:
        if self.class_weights is None:
            return None
        if self.class_weights == "balanced":
            seen = sum(1 for name in classes if counts[name])
            total = sum(counts.values())
            return [total / (seen * counts[name]) if counts[name] else 0.0 for name in classes]
        given: Dict[str, float] = self.class_weights  # type: ignore[assignment]
        unknown = sorted(set(given) - set(classes))
        if unknown:
            text = f"[agent.class_weights] names no class: {', '.join(unknown)}"
            raise ConfigError([Problem("", text, "write its labels as keys")])
        return [float(given.get(name, 1.0)) for name in classes]

    def _set_classes(self, classes: List[str], weights: Optional[List[float]]) -> None:
        self.classes = classes
        self.weights = weights
        self._index = {name: index for index, name in enumerate(classes)}
        # Of examples of the data, by their place in it.
        self._class_numbers = RowNumbers()

    def state(self) -> Dict[str, Any]:
        return {"classes": self.classes, "weights": self.weights, "n_features": self.n_features}

    def set_state(self, state: Dict[str, Any]) -> None:
        self._set_classes([str(name) for name in state["classes"]], state["weights"])
        self.n_features = state["n_features"]

    def set_tokenizer(self, tokenizer: Optional[Tokenizer]) -> None:
        super().set_tokenizer(tokenizer if self.needs_text else None)

    def sample(self) -> Sequence[Any]:
        ops = self.model.ops
        if self.n_features is not None:
            X: Any = ops.alloc2f(1, self.n_features)
        else:
            X = self.contexts([[(PARTNER, "a")]])
        return X, ops.alloc2f(1, len(self.classes))

    # --- acting ---------------------------------------------------------------------

    def batch_lengths(self, observations: Observations) -> Lengths:
        """The tokens of each context; 1 for each row of features."""
        if self.needs_text:
            return super().batch_lengths(observations)
        return Lengths(np.ones((len(observations), 1), dtype=np.int64), (False,))

    def train_batch(self, observations: Observations) -> None:
        ops = self.model.ops
        targets = ops.asarray1i(self.targets(observations))
        logits, backprop = self.model.begin_update(self._input(observations))
        weights = None if self.weights is None else ops.asarray1f(self.weights)
        d_logits, losses = self.loss(logits, targets, weights)
        self.count_loss(observations, losses)
        backprop(d_logits)

    def targets(self, observations: Observations) -> Any:
        """Number of each example's class; every observation has ``labels``.

        RETURNS (Ints1d): Shape (n_examples,), int64.
        RAISES (DataError): If a label is no class.
        """
        labels = first_labels(observations)

        def numbers_of(texts: Sequence[str]) -> List[int]:
            for text in texts:
                if text not in self._index:
                    name = column(observations, "id")[list(labels).index(text)]
                    found = f"example {name} has the label {text!r}, which is not among the classes"
                    raise DataError("training data", f"{found}.")
            return [self._index[text] for text in texts]

        return self._class_numbers.of(labels, numbers_of)

    def answer(self, observations: Observations) -> Sequence[Message]:
        if not len(observations):
            return []
        ops = self.model.ops
        logits = self.model.predict(self._input(observations))
        P = ops.to_numpy(ops.softmax(logits))
        self._count_evaluation_loss(observations, P)
        # Stable: among equals the first class comes first.
        order = np.argsort(-P, axis=1, kind="stable")[:, :RANKED]
        best = P[np.arange(len(P)), order[:, 0]]
        ranked = [[self.classes[index] for index in row] for row in order]
        texts = [row[0] for row in ranked]
        if self.reject_class is not None:
            texts = [
                text if p >= self.threshold else self.reject_class
                for text, p in zip(texts, best.tolist())
            ]
        columns = {
            "text": texts,
            "text_candidates": ranked,
            "candidate_scores": np.take_along_axis(P, order, axis=1).tolist(),
            "probability": best.tolist(),
            "classes": [self.classes] * len(P),
            "probabilities": P.tolist(),
        }
        return MessageBatch(columns, len(observations))

    def _count_evaluation_loss(self, observations: Observations, P: Any) -> None:
        for row, labels in zip(P, column(observations, "eval_labels")):
            index = self._index.get(labels[0]) if labels else None
            if index is not None:
                loss = -float(np.log(max(row[index], 1e-30)))
                self.counters.loss = self.counters.loss + AverageMetric(loss, 1)

    def _input(self, observations: Observations) -> Any:
        if self.n_features is None:
            contexts: Ragged = self.observed_contexts(observations)
            return contexts
        rows = column(observations, "features")
        for name, row in zip(column(observations, "id"), rows):
            if row is None or len(row) != self.n_features:
                found = "no" if row is None else len(row)
                who = "the message" if name is None else f"example {name}"
                raise DataError(
                    "data",
                    f"{who} has {found} features, expected {self.n_features}: this "
                    "classifier reads features, not text.",
                )
        stacked: Any = np.stack(rows)
        return self.model.ops.asarray2f(stacked)
