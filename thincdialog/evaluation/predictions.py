"""Record an agent's replies to all examples of a split."""

from array import array
from dataclasses import dataclass
from functools import partial
from typing import Any, Dict, Iterable, List, Optional, Sequence

from ..messages import SELF, Message, Turn
from ..metrics import AverageMetric, ExampleMetric, Metric
from ..metrics.example_metric import can_score
from ..teachers.held_out import both_sides


@dataclass
class Prediction:
    """Hold a reply to one example.

    id (str): Id of the example.
    labels (Optional[Sequence[str]]): The right replies. If None, the reply is not scored; if
        empty, it is scored only if a metric compares sets.
    reply (Message): The agent's reply.
    text (Optional[str]): Text of the example; None for features.
    context (Sequence[Turn]): The turns before the text, if the example has them.
    task (str): Name of the task; "" if there is only one.
    conversation (str): Common name of the examples of one conversation; the id of an example that
        is not part of a conversation.
    n_candidates (int): Number of candidates of the example; 0 if it has none.
    is_end (bool): Whether the example ended its episode.
    """

    id: str
    labels: Optional[Sequence[str]]
    reply: Message
    text: Optional[str] = None
    context: Sequence[Turn] = ()
    task: str = ""
    conversation: str = ""
    n_candidates: int = 0
    is_end: bool = True

    def as_json(self, metrics: Sequence[ExampleMetric], n_best: int = 10) -> Dict[str, Any]:
        """Return the prediction as a row of a predictions file.

        metrics (Sequence[ExampleMetric]): The metrics to score by.
        n_best (int): Number of candidates to include, with their scores.
        """
        row: Dict[str, Any] = {"id": self.id}
        if self.task:
            row["task"] = self.task
        if self.conversation != self.id:
            row["conversation"] = self.conversation
        if self.context:
            row["context"] = [
                {"speaker": "model" if role == SELF else "partner", "text": text}
                for role, text in self.context
            ]
        row.update(text=self.text, labels=list(self.labels or ()), reply=reply_of(self.reply))
        if self.n_candidates:
            row["n_candidates"] = self.n_candidates
        texts = self.reply.get("text_candidates")
        if texts is not None:
            scores = self.reply.get("candidate_scores") or [None] * len(texts)
            pairs = zip(texts[:n_best], scores)
            row["candidates"] = [
                {"text": text} if score is None else {"text": text, "score": float(score)}
                for text, score in pairs
            ]
        if self.labels or (self.labels is not None and "predicted_labels" in self.reply):
            row["right"] = is_right(self.reply, self.labels)
        row["metrics"] = {
            name: metric.value()
            for name, metric in report_of([self], metrics).items()
            if is_mean_of_examples(metric)
        }
        return row


def reply_of(reply: Message) -> Any:
    """Return an agent's answer: a text, a list of labels, or None if there is no answer."""
    return reply.get("predicted_labels", reply.get("text"))


def is_right(reply: Message, labels: Sequence[str]) -> bool:
    """Return whether a reply is one of the labels; if the reply is a set of labels, whether the
    sets are equal."""
    if "predicted_labels" in reply:
        return set(reply["predicted_labels"]) == set(labels)
    return reply.get("text") in labels


def report_of(rows: Sequence[Prediction], metrics: Sequence[ExampleMetric]) -> Dict[str, Metric]:
    """Report the metrics of some predictions together; {} if none of them has labels."""
    known = [row for row in rows if can_score(row.labels, metrics)]
    report: Dict[str, Metric] = {}
    for metric in metrics if known else ():
        counted = metric.fresh()
        counted.add_batch([row.labels or () for row in known], [row.reply for row in known])
        report.update(counted.report())
    return report


def is_mean_of_examples(metric: Metric) -> bool:
    """Return whether the metric of all examples is the mean of its values for single examples."""
    if not isinstance(metric, AverageMetric) or float(metric.denominator) != 1:
        return False
    return type(metric).value is AverageMetric.value


class Recorder:
    """Record the replies of an evaluation; see ``evaluate_agent()``.

    predictions (Dict[str, List[Prediction]]): Task ("" if there is only one) to replies; in the
        order of the data after ``arrange``.
    """

    def __init__(self) -> None:
        self.predictions: Dict[str, List[Prediction]] = {}

    def record(self, task: str, messages: Any, replies: Any) -> None:
        """Record the acts of a parley: those of the teacher, and the agent's replies to them."""
        if isinstance(messages, Message):
            messages, replies = [messages], [replies]
        rows = map(partial(_prediction, task), messages, replies)
        self.predictions.setdefault(task, []).extend(rows)

    def join(self, other: "Recorder") -> None:
        """Add the replies to other examples that another recorder has recorded."""
        for task, rows in other.predictions.items():
            self.predictions.setdefault(task, []).extend(rows)

    def arrange(self, task: str, ids: Iterable[str]) -> None:
        """Sort the replies of a task into the order of its data, after all were recorded.

        ids (Iterable[str]): Ids of all examples of the task, in the order of the data.
        """
        rows, places = self.predictions.setdefault(task, []), dict[str, int]()
        for place, name in enumerate(ids if rows else ()):
            places.setdefault(name, place)
        rows.sort(key=lambda row: places.get(row.id, len(places)))
        _name_conversations(rows)


def _prediction(task: str, message: Message, reply: Message) -> Prediction:
    reply = Message(reply)
    for name in ("candidate_scores", "candidate_probabilities", "probabilities"):
        # All replies are in memory, and an array takes a quarter of a list's memory.
        if reply.get(name) is not None:
            reply[name] = array("d", reply[name])
    conversation = ""
    if "context" in message:  # A turn of a conversation that was flattened.
        conversation = _conversation_of(str(message["id"]))
    return Prediction(
        id=str(message["id"]),
        labels=message.get("labels", message.get("eval_labels")),
        reply=reply,
        text=message.get("text"),
        context=message.get("context") or (),
        task=task,
        conversation=conversation,
        n_candidates=len(message.get("label_candidates") or ()),
        is_end=bool(message.get("episode_done", True)),
    )


def _name_conversations(rows: List[Prediction]) -> None:
    """Set the conversation of each row, given the rows in the order of the data."""
    going = ""
    for row in rows:
        if going or not row.is_end:
            going = going or _conversation_of(row.id) or row.id
            row.conversation = going
        row.conversation = row.conversation or row.id
        going = "" if row.is_end else going


def _conversation_of(example: str) -> str:
    """Return the conversation's name in an id such as `<conversation>/<turn>`; "" for other ids."""
    name, _, turn = example.rpartition("/")
    return both_sides(name) if turn.isdecimal() else ""
