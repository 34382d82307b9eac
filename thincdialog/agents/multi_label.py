"""An agent that predicts any number of labels for a text."""

from itertools import islice
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
    Union,
)

import numpy as np
from thinc.api import Model, to_numpy
from thinc.types import Floats2d

from ..errors import DataError
from ..examples.batch import Batch
from ..files.json_file import texts_in
from ..losses.label_sigmoid import LabelSigmoid
from ..messages import Message, MessageBatch
from ..ops.devices import upload
from ..protocol import Observations, ReadingOptions
from ..registry import registry
from ..teachers import Teacher
from .beginnings import Carried
from .classifier import SOFTMAX, _last_layers
from .collating import Collate
from .judged import Inputs, Judged
from .model_agent import ModelAgent, labelled_examples, no_layer

PROBABILITIES = (*SOFTMAX, "thinc.layers.sigmoid", "thinc.layers.sigmoid_activation")
# Parameter of the model that holds the threshold of each label.
THRESHOLDS = "thresholds"
# Threshold of a label before one is chosen on the dev data, and of a label without a dev example.
DEFAULT = 0.5
# Number of dev examples to score at once.
BATCH_SIZE = 256


@registry.agents("thincdialog.MultiLabel.v1")
class MultiLabelAgent(ModelAgent):
    """Predicts any number of labels for a text: each label whose probability reaches a threshold. A
    reply has `predicted_labels`, most probable first, and their names as its text.

    model (Model): Maps conversations (Ragged) to logits, shape (n_examples, n_labels).
    loss (Optional[Callable]): A registered loss; `thincdialog.LabelSigmoid.v1` if None.
    labels (Optional[List[str]]): All labels; from the training data if None.
    threshold (Union[float, str]): Probability from which a label is predicted, 0.0 to 1.0; or
        "dev": each label has its own threshold, the one with the highest F1 on the dev data, chosen
        again before each evaluation in training.
    history_size (int): Turns that the model reads, the last one included; -1 for all.
    max_context (int): Maximum number of tokens of these turns, of which the last are kept; 0 for no
        limit.
    delimiter (bool): Whether a ``<turn>`` token separates turns.
    speaker_tokens (bool): Whether each turn starts with a token for its speaker.
    segments (str): Unit that the model can distinguish: "turn" or "line".
    collate (Optional[Callable]): A registered function that builds the input of the model from a
        batch, such as texts and images; the texts if None.
    RAISES (ValueError): If threshold is out of range, or the model ends in a softmax or sigmoid.
    """

    id = "multi-label"
    has_classes = has_label_sets = True

    def __init__(
        self,
        model: Model,
        loss: Optional[Callable] = None,
        labels: Optional[List[str]] = None,
        threshold: Union[float, Literal["dev"]] = DEFAULT,
        history_size: int = 1,
        max_context: int = 256,
        delimiter: bool = True,
        speaker_tokens: bool = False,
        segments: Literal["turn", "line"] = "turn",
        collate: Optional[Collate] = None,
    ):
        if threshold != "dev" and not 0.0 <= float(threshold) <= 1.0:
            raise ValueError(f"threshold = {threshold}, expected 0.0 to 1.0, or 'dev'")
        if any(layer._func.__module__ in PROBABILITIES for layer in _last_layers(model)):
            raise ValueError(
                "the model ends in a softmax or sigmoid, but logits are expected: leave it out"
            )
        super().__init__(
            model,
            collate=collate,
            history_size=history_size,
            max_context=max_context,
            delimiter=delimiter,
            speaker_tokens=speaker_tokens,
            segments=segments,
            use_reply="none",
        )
        self.loss: Callable = no_layer("loss", loss) or LabelSigmoid()
        self.given_labels = labels
        self.threshold = threshold
        self._set_labels([])

    def _set_labels(self, labels: List[str]) -> None:
        self.classes = labels
        self._index = {label: number for number, label in enumerate(labels)}

    # --- the labels ---------------------------------------------------------------

    def survey(self, train: Teacher) -> None:
        """Collect the labels of the training data.

        RAISES (DataError): If an example has features, or a label that is not in the config.
        """
        labels = set(self.given_labels or ())
        for example in labelled_examples(train, "labels", self.given_labels):
            if example.get("features") is not None and self.collate is None:
                text = f"example {example['id']} has features, but this agent reads text"
                raise DataError(train.order.origin, f"{text}: add [agent.collate]")
            labels.update(example.all_labels)
        self._set_labels(self.given_labels or sorted(labels))

    def carry_over(self, state: Mapping[str, Any]) -> Carried:
        """Put the labels of the saved model first, followed by the new labels of the data."""
        before = texts_in(state, "classes") if state.get("classes") else []
        new = [label for label in self.classes if label not in set(before)]
        self._set_labels([*before, *new])
        line = f"labels: {len(before):,} of the saved model, {len(new):,} new"
        return Carried([line] if before else [], (len(before), len(self.classes)))

    def reachable(self, example: Message) -> Collection[str]:
        return self.classes

    def reading(self) -> ReadingOptions:
        return super().reading()._replace(labels=self.given_labels)

    def state(self) -> Dict[str, Any]:
        return {"classes": self.classes}

    def set_state(self, state: Dict[str, Any]) -> None:
        labels = texts_in(state, "classes")
        if len(set(labels)) < max(1, len(labels)):
            raise ValueError("there are no labels, or a label occurs twice")
        self._set_labels(labels)

    def sample(self) -> Sequence[Any]:
        return self.sample_inputs(), self.model.ops.alloc2f(1, len(self.classes))

    # --- training -----------------------------------------------------------------

    def read(self, batch: Batch) -> Inputs:
        return Inputs(batch, self.inputs(batch), self._targets(batch, "labels"))

    def judge(self, Y: Floats2d, inputs: Inputs) -> Judged:
        ops = self.model.ops
        (targets,) = upload(ops, inputs.targets)
        self.check_scores(Y, targets.shape)  # (n_examples, n_labels)
        predicted: Any = ops.sigmoid(Y) >= self._thresholds()
        n_right = (predicted == targets).all(axis=1).sum()
        gradient, losses = self.loss(Y, targets)
        n = len(inputs.batch.rows)
        return Judged(gradient, losses.sum(), n, n_right=n_right, n_judged=n)

    def _targets(self, batch: Batch, field: str) -> np.ndarray:
        """Return 1.0 for the labels of each example, else 0.0; shape (n_examples, n_labels).

        field (str): "labels", or "eval_labels", in which unknown labels are ignored.
        RAISES (DataError): If a label to train on is unknown.
        """
        targets = np.zeros((len(batch.rows), len(self.classes)), dtype="f")
        for row, labels in zip(targets, batch.column(field)):
            for label in labels:
                if label in self._index:
                    row[self._index[label]] = 1.0
                elif field == "labels":
                    text = f"{label!r} is not among the labels that the agent was initialized with"
                    raise DataError("training data", text)
        return targets

    # --- thresholds ---------------------------------------------------------------

    @property
    def needs_dev(self) -> bool:  # type: ignore[override]
        """Whether thresholds are chosen on the dev data."""
        return self.threshold == "dev"

    def lay_out_weights(self) -> None:
        # A parameter without a gradient: the thresholds are kept and restored with the weights.
        thresholds = self.model.ops.alloc1f(len(self.classes)) + DEFAULT
        self.model.set_param(THRESHOLDS, thresholds)
        super().lay_out_weights()

    def _thresholds(self) -> Any:
        if self.threshold == "dev":
            return self.model.get_param(THRESHOLDS)
        return np.float32(self.threshold)

    def tune(self, dev: Teacher) -> None:
        """Choose for each label the threshold with the highest F1 on the dev data.

        dev (Teacher): Teacher of the dev data.
        """
        observations = self._observe_all(dev)
        probabilities, targets = [], []
        with self.evaluating():
            while chunk := list(islice(observations, BATCH_SIZE)):
                batch = Batch.of(chunk)
                probabilities.append(self._probabilities(self.class_scores(batch)))
                targets.append(self._targets(batch, "eval_labels"))
        if targets:
            P, T = np.concatenate(probabilities), np.concatenate(targets)
            chosen: Any = [best_threshold(p, t) for p, t in zip(P.T, T.T)]
            self.model.get_param(THRESHOLDS)[:] = self.model.ops.asarray1f(chosen)

    def _observe_all(self, dev: Teacher) -> Iterator[Message]:
        """Observe all examples that have labels or are known to have none."""
        listener = self.clone()
        for task in dev.by_task().values():
            for message in (message for episode in task.episodes() for message in episode):
                observation = listener.observe(message)
                if observation.get("eval_labels") is not None:
                    yield observation
                listener.self_observe(Message())

    # --- acting -------------------------------------------------------------------

    def _probabilities(self, logits: Floats2d) -> np.ndarray:
        return to_numpy(self.model.ops.sigmoid(logits))

    def answer(self, batch: Observations) -> Sequence[Message]:
        batch = Batch.of(batch)
        logits = self.class_scores(batch)
        P = self._probabilities(logits)  # (n_examples, n_labels)
        # A stable sort, so that equally probable labels keep their order.
        order = np.argsort(-P, axis=1, kind="stable")
        is_predicted = np.take_along_axis(P >= to_numpy(self._thresholds()), order, axis=1)
        names = np.array(self.classes, dtype=object)
        predicted = [names[row[keep]].tolist() for row, keep in zip(order, is_predicted)]
        ranked = order[:, : self.n_ranked]
        scores = np.take_along_axis(P, ranked, axis=1).tolist()
        columns: Dict[str, Sequence[Any]] = {
            "text": [", ".join(labels) for labels in predicted],
            "predicted_labels": predicted,
            "text_candidates": names[ranked].tolist(),
            "candidate_scores": scores,
            "candidate_probabilities": scores,
            "loss": self._evaluation_losses(batch, logits),
            "classes": [self.classes] * len(P),
            "probabilities": P.tolist(),
        }
        return MessageBatch(columns, len(batch))

    def _evaluation_losses(self, batch: Batch, logits: Floats2d) -> List[Optional[float]]:
        """Compute the loss of each example whose labels are known."""
        losses: List[Optional[float]] = [None] * len(batch.rows)
        known = [row for row, each in enumerate(batch.column("eval_labels")) if each is not None]
        if known:
            targets = self._targets(batch.take(np.array(known)), "eval_labels")
            _, found = self.loss(logits[known], self.model.ops.asarray(targets))
            for row, loss in zip(known, to_numpy(found).tolist()):
                losses[row] = loss
        return losses


def best_threshold(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """Return the threshold with the highest F1 for a label. It is halfway between the lowest
    probability that reaches it and the next lower one, so that new texts may score a little lower.
    Of equally good thresholds, return the highest.

    probabilities (np.ndarray): Probability of the label in each example, shape (n_examples,),
        float32.
    targets (np.ndarray): 1.0 for the examples that have the label, else 0.0.
    """
    n_labelled = targets.sum()
    if not n_labelled:
        return DEFAULT
    order = np.argsort(-probabilities, kind="stable")
    highest = probabilities[order]
    below = np.append(highest[1:], np.float32(0.0))
    n_right = targets[order].cumsum()
    f1 = 2 * n_right / (np.arange(1, len(order) + 1) + n_labelled)
    f1[highest == below] = 0.0  # equal probabilities are on the same side of any threshold
    best = int(f1.argmax())
    middle = (highest[best] + below[best]) / 2
    return float(middle if middle > below[best] else highest[best])
