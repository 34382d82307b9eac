"""A saved model that answers messages. It needs only its own folder."""

from numbers import Real
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from ..batchers import Padded
from ..batchers.batcher import plan_order
from ..config import (
    CheckedConfig,
    CodeLike,
    Overrides,
    PathLike,
    build_sections,
    load_code,
    load_config,
)
from ..contract import check_attributes
from ..errors import ConfigError, DialogError, Problem
from ..files.saved_model import CONFIG, model_folder, read_checked_meta, read_consistently
from ..messages import Message
from ..ops.choice import ops_to_answer, using_ops
from ..pretrained.saved_encoder import check_encoders, encoder_places
from ..protocol import Agent

# Sections of a config that answers depend on. The data, the teachers and other custom code may no
# longer exist.
ANSWERING = ("system", "tokenizer", "agent")
# Maximum numbers of tokens (with padding) in a batch, and of messages to plan batches for at once.
MAX_BATCH, MAX_TOGETHER = 8192, 256


class Answer(NamedTuple):
    """Hold a reply that a model chose from.

    text (str): The reply.
    probability (Optional[float]): Its probability among all candidates; None if the model has no
        probabilities.
    """

    text: str
    probability: Optional[float]


class Reply(NamedTuple):
    """Hold a model's reply to a message.

    text (Optional[str]): The reply; the agent's ``reject_class`` if the best candidate is less
        probable than the threshold; None if the model gives no reply.
    candidates (List[Answer]): The best candidates or classes, best first.
    scores (List[float]): Scores of the candidates: their probabilities, or another score if the
        model has no probabilities; empty if it has neither.
    labels (Optional[List[Answer]]): The predicted labels of a model that can predict several.
    classes (Optional[Dict[str, float]]): Probability of each class, in the model's order; None if
        the replies are not classes.
    """

    text: Optional[str]
    candidates: List[Answer]
    scores: List[float]
    labels: Optional[List[Answer]] = None
    classes: Optional[Dict[str, float]] = None

    @property
    def best(self) -> List[Answer]:
        """The reply, followed by the other candidates."""
        text = self.text or ""
        answers = sorted(self.candidates, key=lambda answer: answer.text != text)
        # If the best candidate was rejected, the reply may not be a candidate.
        if not answers or answers[0].text != text:
            answers.insert(0, Answer(text, None))
        return answers

    @property
    def guess(self) -> Optional[Answer]:
        """The best candidate, if it was rejected."""
        is_rejected = self.labels is None and self.candidates[:1] != self.best[:1]
        return self.candidates[0] if self.candidates and is_rejected else None


class TrainedModel:
    """Answer messages with a saved model, in batches. Chatbots, ``predict`` and servers all use
    this class. Several threads may share one object.

    folder (Union[str, Path]): Folder of the model; or folder of a run, to load its best model.
    overrides (Optional[Mapping[str, Any]]): Config settings to change, by their dotted names.
    code (CodeLike): Python file or files that register functions that the agent needs.
    max_batch (int): Maximum number of tokens in a batch, with padding; a longer message is answered
        in a batch of its own.
    RAISES (DialogError): If the folder is not a complete saved model.

    path (Path): Folder of the model.
    meta (Dict[str, Any]): Contents of the model's ``meta.json``.
    agent (Agent): The agent, which answers.
    """

    def __init__(
        self,
        folder: PathLike,
        overrides: Overrides = None,
        code: CodeLike = None,
        *,
        max_batch: int = MAX_BATCH,
    ):
        self.code, self.max_batch = code, max_batch

        def load_parts() -> None:
            self.path = model_folder(folder)
            self.meta, self.checked = open_model(self.path, overrides, code, only=ANSWERING)
            with using_ops(ops_to_answer(self.checked.interpolated["system"])):
                parts = build_sections(self.checked, ANSWERING)
                self.agent: Agent = parts["agent"]
                load_agent(self.agent, self.path, parts.get("tokenizer"))

        read_consistently(folder, load_parts)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        load_code(state["code"])
        self.__dict__.update(state)

    def answer(
        self, messages: Sequence[Message], top: int = 1, threshold: Optional[float] = None
    ) -> List[Reply]:
        """Answer messages, each in a separate conversation.

        messages (Sequence[Message]): Messages with a `text`, and optionally `context`,
            `label_candidates` and `features`.
        top (int): Maximum number of candidates in a reply.
        threshold (Optional[float]): Probability, 0.0 to 1.0, below which the best candidate is
            rejected, or that a label must reach; if None, the model's own thresholds.
        RETURNS (List[Reply]): Replies, in the order of the messages.
        RAISES (DialogError): If a threshold is given, and the model has no probabilities.
        """
        replies = self.replies(messages, top)
        return [self.read(*each, top, threshold) for each in zip(messages, replies)]

    def replies(
        self, messages: Sequence[Message], top: int, count: Callable[[int], Any] = lambda size: None
    ) -> List[Message]:
        """Let the agent reply to messages, batch by batch.

        messages, top: As for ``answer``.
        count (Callable[[int], Any]): Called with the number of messages of each batch.
        RETURNS (List[Message]): The agent's replies, in the order of the messages.
        """
        players = [self.agent.clone() for _ in messages]
        observations = [player.observe(each) for player, each in zip(players, messages)]
        replies: Dict[int, Message] = {}
        for rows in self._batches(observations):
            count(len(rows))
            of_rows = [observations[row] for row in rows]
            replies.update(zip(rows, self.act([players[row] for row in rows], of_rows, top)))
        return [replies[row] for row in range(len(messages))]

    def _batches(self, observations: Sequence[Message]) -> Iterator[List[int]]:
        """Divide observations into batches of at most ``max_batch`` tokens."""
        if len(observations) == 1:
            yield [0]  # Planning would add a tenth to the time for a single message.
            return
        batcher = Padded(self.max_batch)
        for start in range(0, len(observations), MAX_TOGETHER):
            lengths = self.agent.batch_lengths(observations[start : start + MAX_TOGETHER])
            order, edges = plan_order(batcher, lengths, self.max_batch, np.random.default_rng(0))
            for begin, end in zip(edges, edges[1:]):
                yield (order[begin:end] + start).tolist()

    def act(
        self, players: Sequence[Agent], observations: Sequence[Message], top: int = 1
    ) -> Sequence[Message]:
        """Let copies of the agent answer their observations, in one batch.

        players (Sequence[Agent]): Copies of the agent.
        observations (Sequence[Message]): Observation of each copy.
        top (int): Number of candidates in a reply, if there are as many.
        """
        agent = self.agent
        if top > agent.n_ranked:
            agent = agent.clone()
            agent.n_ranked = top
        # Overflow ends in an error, so NumPy's warning is not needed.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if agent.can_batch:
                return agent.batch_act(observations)
            return [player.act() for player in players]

    def read(self, message: Message, said: Message, top: int, threshold: Optional[float]) -> Reply:
        """Convert the agent's answer to a reply, and apply the threshold.

        message (Message): The message.
        said (Message): The agent's answer to it.
        top, threshold: As for ``answer``.
        RAISES (DialogError): If a threshold is given, and the model has no probabilities; or if the
            model's threshold is not chosen yet.
        """
        agent = self.agent
        if threshold is None and agent.rejects_below is None:
            why = f"{self.path}  has no threshold yet: it is chosen for model-best when training "
            raise DialogError(f"{why}ends. Continue with train --resume, or give a threshold.")
        text: Optional[str] = said.get("text")
        texts = said.get("text_candidates") or []
        probabilities = said.get("candidate_probabilities")
        if threshold and probabilities is None:
            raise DialogError(f"{agent.id} returns no probabilities, so it has no threshold.")
        scores = probabilities or said.get("candidate_scores") or []
        if threshold is not None and probabilities is not None and texts:
            text = agent.decide(message.get("text"), texts[0], scores[0], threshold)
        shown = list(map(float, scores[:top]))
        known = shown if probabilities is not None else [None] * top
        candidates, labels, classes = list(map(Answer, texts[:top], known)), None, None
        if "probabilities" in said:
            classes = dict(zip(said["classes"], said["probabilities"]))
        if classes is not None and "predicted_labels" in said:
            found = said["predicted_labels"]
            if threshold is not None:
                found = [label for label, p in zip(texts, scores) if p >= threshold]
            labels = [Answer(label, classes[label]) for label in found]
            text = ", ".join(found)
        return Reply(text, candidates, shown, labels, classes)


def check_wanted(top: Optional[int], threshold: Optional[float]) -> None:
    """Check that a number of answers and a threshold are valid, if given.

    RAISES (ValueError): If one of them is out of range.
    """
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise ValueError(f"top = {top!r}, expected a number of answers, 1 or more")
    is_share = isinstance(threshold, Real) and 0.0 <= float(threshold) <= 1.0
    if threshold is not None and not is_share:
        raise ValueError(f"threshold = {threshold!r}, but it is a probability: 0.0 to 1.0")


def open_model(
    path: Path, overrides: Overrides, code: CodeLike, **options: Any
) -> tuple[Dict[str, Any], CheckedConfig]:
    """Open a saved model, and return its meta.json and its config, both checked.

    **options (Any): Arguments of ``load_config``.
    RAISES (DialogError): If the folder is not a complete saved model.
    """
    meta = read_checked_meta(path)
    load_code(code)
    given = overrides or {}
    try:
        checked = load_config(path / CONFIG, given, **options)
    except ConfigError as error:
        raise ConfigError(_with_code_hints(error.problems, meta), error.path) from None
    places = encoder_places(path, checked.config)
    if places:
        checked = load_config(path / CONFIG, {**places, **given}, **options)
    return meta, checked


def _with_code_hints(problems: Sequence[Problem], meta: Mapping[str, Any]) -> List[Problem]:
    """Return the problems; hints about missing code name the files that training was started
    with."""
    files = meta.get("code") or []
    if not files:
        return list(problems)
    flags = " ".join(f"--code {file}" for file in files)
    return [
        each._replace(
            hint=each.hint.replace("--code FILE", flags).replace("code=FILE", f"code={files}")
        )
        for each in problems
    ]


def load_agent(agent: Agent, path: Path, tokenizer: Any) -> None:
    """Load the agent of a saved model. Arguments are as for ``Agent.from_disk``."""
    check_encoders(getattr(agent, "model", None), path)
    agent.from_disk(path, tokenizer=tokenizer)
    check_attributes(agent)
