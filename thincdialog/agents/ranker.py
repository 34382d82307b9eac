"""Answers with the best of many candidate replies."""

from collections import Counter
from typing import Any, Callable, Dict, List, Literal, Optional, Sequence, Tuple

import numpy as np
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..batchers import Lengths
from ..data import Tokenizer
from ..errors import ConfigError, Problem
from ..losses.ranking import RankingSoftmax
from ..messages import PARTNER, SELF, Message, MessageBatch, column
from ..metrics import AverageMetric
from ..protocol import Observations
from ..registry import registry
from ..teachers import Teacher
from ..teachers.reading import read_list
from .candidate_vectors import CandidateVectors
from .conversation import RANKED
from .fields import LABEL, candidate_limits, has_rectangles, token_limits
from .model_agent import ModelAgent
from .training_labels import check_labels, first_labels, known_labels, no_labels

Candidates = Literal["batch", "inline", "fixed", "vocab"]


@registry.agents("thincdialog.Ranker.v1")
def make_ranker(
    model: Model,
    loss: Optional[Callable] = None,
    candidates: Candidates = "batch",
    fixed_candidates: Optional[str] = None,
    max_fixed_candidates: int = 50000,
    history_size: int = -1,
    max_context: int = 256,
    max_label: int = 64,
    delimiter: bool = True,
    speaker_tokens: bool = False,
    segments: Literal["turn", "line"] = "turn",
    use_reply: Literal["label", "model", "none"] = "label",
) -> "RankerAgent":
    """A ranker: replies and conversations become vectors, the closest reply is given.

    Trained against ``candidates``; answers from the message's ``label_candidates``,
    or from the fixed candidates if it has none. The fixed ones are encoded once.

    model (Model): A bi-encoder, ``thincdialog.BiEncoder.v1``.
    loss (Optional[Callable]): A registered ranking loss; softmax if None.
    candidates (str): What the right reply is told from in training: "batch" (the
        right replies of the other examples), "inline" (the message's
        ``label_candidates``), "fixed", or "vocab" (the words of the vocabulary).
    fixed_candidates (Optional[str]): File of candidates, one a line; the training
        data's own replies if None.
    max_fixed_candidates (int): How many of these to keep, the most frequent first.
    history_size (int): Turns that the model sees, the current one included; -1 for all.
    max_context (int): Tokens of them, the last are kept; 0 for no limit.
    max_label (int): Tokens of a reply, the first are kept; 0 for no limit.
    delimiter (bool): Whether a ``<turn>`` token stands between turns.
    speaker_tokens (bool): Whether each turn starts with its speaker's token.
    segments (str): Unit that the model is told of: "turn" or "line".
    use_reply (str): What the history keeps as the agent's own turns: "label" (the right
        reply, its own where that is unknown), "model" (its own; nothing in training,
        where it only learns) or "none".
    RAISES (ValueError): If max_fixed_candidates is below 1.
    """
    if max_fixed_candidates < 1:
        raise ValueError(f"max_fixed_candidates = {max_fixed_candidates}, expected 1 or more")
    return RankerAgent(
        model,
        loss=loss or RankingSoftmax(),
        candidates=candidates,
        fixed_candidates=fixed_candidates,
        max_fixed_candidates=max_fixed_candidates,
        history_size=history_size,
        max_context=max_context,
        max_label=max_label,
        delimiter=delimiter,
        speaker_tokens=speaker_tokens,
        segments=segments,
        use_reply=use_reply,
    )


class RankerAgent(ModelAgent):
    """See ``make_ranker``."""

    id = "ranker"

    def __init__(
        self,
        model: Model,
        *,
        loss: Callable,
        candidates: Candidates = "batch",
        fixed_candidates: Optional[str] = None,
        max_fixed_candidates: int = 50000,
        **text_options: Any,
    ):
        for ref in ("context_encoder", "candidate_encoder"):
            if not model.has_ref(ref):
                raise ValueError(
                    f"[agent.model] is '{model.name}', which has no '{ref}'. Put the encoder "
                    'into [agent.model.encoder] under @models = "thincdialog.BiEncoder.v1"'
                )
        super().__init__(model, **text_options)
        self.loss = loss
        self.candidates = candidates
        self.fixed_path = fixed_candidates
        self.max_fixed_candidates = max_fixed_candidates
        self.fixed: List[str] = []
        self._vectors = CandidateVectors(model.ops, self._encode_candidates)

    def replica(self) -> "RankerAgent":
        replica = super().replica()
        replica._vectors = CandidateVectors(replica.model.ops, replica._encode_candidates)
        return replica

    # --- what is learnt besides weights ---------------------------------------------

    def learn(self, train: Teacher) -> None:
        if self.fixed_path is not None:
            found = list(dict.fromkeys(read_list(self.fixed_path)))
        else:
            counts = Counter(train.all_labels())
            if not counts:
                raise no_labels(train)
            # A stable sort: of equally frequent replies the first seen comes first.
            found = sorted(counts, key=lambda text: -counts[text])
        self.fixed = found[: self.max_fixed_candidates]

    def set_tokenizer(self, tokenizer: Optional[Tokenizer]) -> None:
        super().set_tokenizer(tokenizer)
        if self.candidates == "vocab":
            self.fixed = self._vocabulary(tokenizer)

    @staticmethod
    def _vocabulary(tokenizer: Optional[Tokenizer]) -> List[str]:
        words = getattr(tokenizer, "vocabulary", None)
        if words is None:
            text = "[agent] candidates = 'vocab', but [tokenizer] has no vocabulary"
            raise ConfigError([Problem("", text, "use thincdialog.Words.v1")], "config")
        return list(words.tokens)

    def state(self) -> Dict[str, Any]:
        return {"fixed_candidates": self.fixed}

    def set_state(self, state: Dict[str, Any]) -> None:
        self.fixed = [str(text) for text in state["fixed_candidates"]]
        if not self.fixed:
            raise ValueError("no fixed_candidates")

    def sample(self) -> Sequence[Any]:
        return [(self.contexts([[(PARTNER, "a")]]), self.replies(["a"]))]

    def forget_computed(self) -> None:
        self._vectors.forget()

    # --- lengths ----------------------------------------------------------------------

    def padded_fields(self) -> Tuple[bool, ...]:
        encoders = map(self.model.get_ref, ("context_encoder", "candidate_encoder"))
        return tuple(map(has_rectangles, encoders))

    def batch_lengths(self, observations: Observations) -> Lengths:
        """Context and label of each observation; the label counts 0 where there are no
        ``labels`` to learn from. (A label that several rows of a batch share is read
        once, and candidates that are no labels are not counted.)"""
        contexts, padded = super().batch_lengths(observations)
        counts = np.concatenate((contexts, np.zeros_like(contexts)), axis=1)
        rows, texts = known_labels(observations)
        if len(rows):
            limits = token_limits(observations, LABEL)
            some = None if limits is None else limits[rows]
            counts[rows, LABEL] = self.text.label_lengths(texts, some)
        return Lengths(counts, padded)

    # --- learning ---------------------------------------------------------------------

    def train_batch(self, observations: Observations) -> None:
        ops = self.model.ops
        replies, targets, allowed = self._training_candidates(observations)
        X = (self.observed_contexts(observations), replies)
        (contexts, candidates), backprop = self.model.begin_update(X)
        scores = ops.gemm(contexts, candidates, trans2=True)
        mask = None if allowed is None else ops.asarray(allowed)
        d_scores, losses = self.loss(scores, ops.asarray1i(targets), mask)
        self.count_loss(observations, losses)
        d_contexts = ops.gemm(d_scores, candidates)
        d_candidates = ops.gemm(d_scores, contexts, trans1=True)
        backprop((d_contexts, d_candidates))

    def _training_candidates(self, observations: Observations) -> Tuple[Ragged, Any, Optional[Any]]:
        """Distinct candidates of the batch, where each example's right one is,
        and which of them each example may be told from (all if None)."""
        labels = first_labels(observations)
        if self.candidates == "batch":
            limits = token_limits(observations, LABEL)
            numbers, encoded = self.text.distinct_labels(labels, limits)
            return self.ragged(LABEL, *encoded), numbers, None
        allowed = None
        if self.candidates in ("fixed", "vocab"):
            rows = _number(self.fixed)
            check_labels(
                observations, labels, [rows] * len(labels), f"{self.candidates} candidates"
            )
        else:
            lists = column(observations, "label_candidates")
            check_labels(observations, labels, [c or () for c in lists], "label_candidates")
            rows = _number(text for row in lists for text in row)
            allowed = np.zeros((len(labels), len(rows)), dtype=bool)
            for index, texts in enumerate(lists):
                allowed[index, [rows[text] for text in texts]] = True
        targets = [rows[text] for text in labels]
        limits = candidate_limits(observations, len(rows), targets)
        return self.replies(list(rows), limits), targets, allowed

    # --- answering --------------------------------------------------------------------

    def answer(self, observations: Observations) -> Sequence[Message]:
        if not len(observations):
            return []
        X = self.observed_contexts(observations)
        vectors = self.model.get_ref("context_encoder").predict(X)
        lists = column(observations, "label_candidates")
        inline = [index for index, texts in enumerate(lists) if texts]
        replies: List[Any] = [None] * len(lists)
        scored = self._score_inline(vectors, [lists[i] for i in inline], inline) if inline else []
        for index, scores in zip(inline, scored):
            replies[index] = self._reply(lists[index], scores, observations[index])
        others = [index for index in range(len(lists)) if not lists[index]]
        if others:
            for index, scores in zip(others, self._score_fixed(vectors, others)):
                replies[index] = self._reply(self.fixed, scores, observations[index])
        names = ("text", "text_candidates", "candidate_scores")
        columns: Dict[str, Any] = {name: [reply[name] for reply in replies] for name in names}
        return MessageBatch(columns, len(replies))

    def _score_inline(
        self, vectors: Floats2d, lists: List[Sequence[str]], rows: List[int]
    ) -> List[Any]:
        ops = self.model.ops
        texts = [text for candidates in lists for text in candidates]
        at = ops.asarray1i(self._vectors.rows(texts))
        sizes = [len(candidates) for candidates in lists]
        owner = ops.asarray1i(np.repeat(rows, sizes).tolist())
        # (n_candidates_of_all, width) each: one product a candidate, no padding.
        scores = (self._vectors.vectors[at] * vectors[owner]).sum(axis=1)
        return np.split(ops.to_numpy(scores), np.cumsum(sizes)[:-1])

    def _score_fixed(self, vectors: Floats2d, rows: List[int]) -> Any:
        ops = self.model.ops
        at = ops.asarray1i(self._vectors.rows(self.fixed))
        some = vectors[ops.asarray1i(rows)]
        return ops.to_numpy(ops.gemm(some, self._vectors.vectors[at], trans2=True))

    def _reply(self, texts: Sequence[str], scores: Any, observation: Message) -> Dict[str, Any]:
        self._count_evaluation_loss(texts, scores, observation)
        # Stable: among equals the first candidate comes first.
        order = np.argsort(-scores, kind="stable")[:RANKED]
        ranked = [texts[index] for index in order.tolist()]
        text = ranked[0]
        if not observation.all_labels:
            # In a chat, say nothing twice if there is anything else to say.
            said = {turn for role, turn in observation.get("turns", ()) if role == SELF}
            text = next((candidate for candidate in ranked if candidate not in said), text)
        best = scores[order].tolist()
        return {"text": text, "text_candidates": ranked, "candidate_scores": best}

    def _count_evaluation_loss(self, texts: Sequence[str], scores: Any, observed: Message) -> None:
        right = observed.get("eval_labels")
        if not right or right[0] not in texts:
            return
        at = texts.index(right[0])
        high = scores.max()
        loss = float(np.log(np.exp(scores - high).sum()) + high - scores[at])
        self.counters.loss = self.counters.loss + AverageMetric(loss, 1)

    def _encode_candidates(self, texts: List[str]) -> Floats2d:
        return self.model.get_ref("candidate_encoder").predict(self.replies(texts))


def _number(texts: Any) -> Dict[str, int]:
    """Each distinct text to its number, in order of first sight."""
    numbers: Dict[str, int] = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    return numbers
