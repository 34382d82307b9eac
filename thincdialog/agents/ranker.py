"""Answers with the best of many candidate replies."""

from collections import Counter
from typing import Any, Callable, Dict, List, Literal, Optional, Sequence, Tuple

import numpy as np
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..batchers import Lengths
from ..data import Tokenizer
from ..data.text_encoder import lowest_limits
from ..errors import ConfigError, DataError, Problem
from ..examples.batch import CONTEXT, LABEL, Batch
from ..examples.store import NO_LABEL
from ..formats.candidates import read_list
from ..losses.ranking import RankingSoftmax
from ..messages import PARTNER, SELF, Message, MessageBatch
from ..protocol import Observations, ReadingOptions
from ..registry import registry
from ..teachers import Teacher
from .candidate_vectors import CandidateVectors
from .conversation import RANKED
from .model_agent import ModelAgent, has_rectangles, no_labels

Candidates = Literal["batch", "inline", "fixed", "vocab"]


@registry.agents("thincdialog.Ranker.v1")
class RankerAgent(ModelAgent):
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

    id = "ranker"

    def __init__(
        self,
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
    ):
        if max_fixed_candidates < 1:
            raise ValueError(f"max_fixed_candidates = {max_fixed_candidates}, expected 1 or more")
        for ref in ("context_encoder", "candidate_encoder"):
            if not model.has_ref(ref):
                raise ValueError(
                    f"[agent.model] is '{model.name}', which has no '{ref}'. Put the encoder "
                    'into [agent.model.encoder] under @models = "thincdialog.BiEncoder.v1"'
                )
        super().__init__(
            model,
            history_size=history_size,
            max_context=max_context,
            max_label=max_label,
            delimiter=delimiter,
            speaker_tokens=speaker_tokens,
            segments=segments,
            use_reply=use_reply,
        )
        self.loss = loss or RankingSoftmax()
        self.candidates = candidates
        self.fixed_path = fixed_candidates
        self.max_fixed_candidates = max_fixed_candidates
        self.fixed: List[str] = []
        self._vectors = CandidateVectors(model.ops, self._encode_candidates)

    _caches = ("_vectors",)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._vectors = CandidateVectors(self.model.ops, self._encode_candidates)

    def replica(self) -> "RankerAgent":
        replica = super().replica()
        replica._vectors = CandidateVectors(replica.model.ops, replica._encode_candidates)
        return replica

    def reading(self) -> ReadingOptions:
        path = self.fixed_path
        return super().reading()._replace(labels=None if path is None else read_list(path))

    def choosing(self, batch: Batch) -> Sequence[Message]:
        if self.candidates != "batch":
            return batch
        replies = list(dict.fromkeys(batch.first_labels()))
        return [Message(message, label_candidates=replies) for message in batch]

    # --- what is learnt besides weights ---------------------------------------------

    def survey(self, train: Teacher) -> None:
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

    # --- lengths ----------------------------------------------------------------------

    def padded_fields(self) -> Tuple[bool, ...]:
        encoders = map(self.model.get_ref, ("context_encoder", "candidate_encoder"))
        return tuple(map(has_rectangles, encoders))

    def batch_lengths(self, observations: Observations) -> Lengths:
        """Context and label of each observation; the label counts 0 where there are no
        ``labels`` to learn from. (A label that several rows of a batch share is read
        once, and candidates that are no labels are not counted.)"""
        batch = Batch.of(observations)
        counts = np.zeros((len(batch), 2), dtype=np.int64)
        counts[:, CONTEXT] = self.text.context_lengths(batch)
        labelled = batch.labelled()
        if len(labelled.rows):
            has_label = batch.label_ids != NO_LABEL
            counts[has_label, LABEL] = self.text.label_lengths(labelled)
        return Lengths(counts, self.padded)

    # --- learning ---------------------------------------------------------------------

    def learn(self, batch: Batch) -> None:
        ops = self.model.ops
        X, targets, allowed = self._training_input(batch)
        scores, backprop = self.model.begin_update(X)  # (n_examples, n_candidates)
        mask = None if allowed is None else ops.xp.asarray(allowed)
        shape = (len(batch.rows), len(X[1].lengths))
        d_scores, losses = self.losses(scores, shape, ops.asarray1i(targets), mask)
        self.count_losses(batch, losses)
        backprop(d_scores)

    def _training_input(self, batch: Batch) -> Tuple[Tuple[Ragged, Ragged], Any, Optional[Any]]:
        """Conversations and distinct candidates of the batch, where each example's right one
        is, and which of them each example may be told from (all if None)."""
        if self.candidates == "batch":
            contexts, candidates, numbers = self.text.pairs(batch)
            X = (self.ragged(contexts, CONTEXT), self.ragged(candidates, LABEL))
            return X, numbers, None
        labels = batch.first_labels()
        allowed = None
        if self.candidates in ("fixed", "vocab"):
            rows = _number(self.fixed)
            _check_labels(batch, labels, [rows] * len(labels), f"{self.candidates} candidates")
        else:
            lists = batch.column("label_candidates")
            _check_labels(batch, labels, [texts or () for texts in lists], "label_candidates")
            rows = _number(text for texts in lists for text in texts)
            allowed = np.zeros((len(labels), len(rows)), dtype=bool)
            for index, texts in enumerate(lists):
                allowed[index, [rows[text] for text in texts]] = True
        targets = [rows[text] for text in labels]
        replies = self.replies(list(rows), lowest_limits(batch, targets, len(rows)))
        return (self.contexts(batch), replies), targets, allowed

    # --- answering --------------------------------------------------------------------

    def answer(self, batch: Observations) -> Sequence[Message]:
        if not len(batch):
            return []
        batch = Batch.of(batch)
        vectors = self.model.get_ref("context_encoder").predict(self.contexts(batch))
        lists = batch.column("label_candidates")
        labels, eval_labels = batch.column("labels"), batch.column("eval_labels")
        is_chat = [not (known or right) for known, right in zip(labels, eval_labels)]
        turns = batch.turns(self.history_size) if any(is_chat) else []
        names = ("text", "text_candidates", "candidate_scores")
        columns: Dict[str, Any] = {name: [] for name in names}
        for row, scores in enumerate(self._scores(vectors, lists)):
            texts = lists[row] or self.fixed
            self._count_evaluation_loss(texts, scores, eval_labels[row])
            # Stable: among equals the first candidate comes first.
            order = np.argsort(-scores, kind="stable")[:RANKED]
            ranked = [texts[index] for index in order.tolist()]
            # In a chat nothing of its own is said twice if there is anything else to say.
            own = {turn for role, turn in turns[row] if role == SELF} if is_chat[row] else ()
            text = next((text for text in ranked if text not in own), ranked[0])
            for name, value in zip(names, (text, ranked, scores[order].tolist())):
                columns[name].append(value)
        return MessageBatch(columns, len(lists))

    def _scores(self, vectors: Floats2d, lists: Sequence[Optional[Sequence[str]]]) -> List[Any]:
        """Of each row's candidates, or of the fixed ones if it has none."""
        ops, known, version = self.model.ops, self._vectors, self.parameters.version
        scores: List[Any] = [None] * len(lists)
        inline = [row for row, texts in enumerate(lists) if texts]
        if inline:
            sizes = [len(lists[row] or ()) for row in inline]
            at = ops.asarray1i(known.rows([t for row in inline for t in lists[row] or ()], version))
            owner = ops.asarray1i(np.repeat(inline, sizes).tolist())
            # (n_candidates_of_all, width) each: one product a candidate, no padding.
            products = ops.to_numpy((known.vectors[at] * vectors[owner]).sum(axis=1))
            for row, own in zip(inline, np.split(products, np.cumsum(sizes)[:-1])):
                scores[row] = own
        others = [row for row, texts in enumerate(lists) if not texts]
        if others:
            at = ops.asarray1i(known.rows(self.fixed, version))
            some = vectors[ops.asarray1i(others)]
            products = ops.to_numpy(ops.gemm(some, known.vectors[at], trans2=True))
            for row, own in zip(others, products):
                scores[row] = own
        return scores

    def _count_evaluation_loss(
        self, texts: Sequence[str], scores: Any, right: Optional[Sequence[str]]
    ) -> None:
        if right and right[0] in texts:
            high, at = scores.max(), texts.index(right[0])
            loss = float(np.log(np.exp(scores - high).sum()) + high - scores[at])
            self.counters.add_loss(loss)

    def _encode_candidates(self, texts: List[str]) -> Floats2d:
        return self.model.get_ref("candidate_encoder").predict(self.replies(texts))


def _number(texts: Any) -> Dict[str, int]:
    """Each distinct text to its number, in order of first sight."""
    numbers: Dict[str, int] = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    return numbers


def _check_labels(batch: Batch, labels: Sequence[str], known: Sequence, what: str) -> None:
    """See that every label of a batch is among the texts that its example may have.

    known (Sequence): Of each example, its texts (anything with ``in``).
    what (str): Name of these texts, for the error.
    """
    for index, (label, texts) in enumerate(zip(labels, known)):
        if label not in texts:
            name = batch.ids()[index]
            found = f"has the label {label!r}, which is not among its" if texts else "has no"
            remedy = 'Mend the data, or set candidates = "batch" in [agent]'
            raise DataError("training data", f"example {name} {found} {what}. {remedy}.")
