"""An agent that answers with the best of many candidate replies."""

from collections import Counter
from functools import partial
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    List,
    Literal,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import numpy as np
from thinc.api import Model
from thinc.types import Floats2d, Ragged

from ..batchers import Lengths
from ..data import Tokenizer
from ..data.text_encoder import count, counting, lowest_limits
from ..errors import ConfigError, DataError, Problem
from ..examples.batch import CONTEXT, LABEL, Batch
from ..examples.store import NO_LABEL
from ..files.json_file import texts_in
from ..formats.candidates import read_candidates
from ..losses.ranking import RankingSoftmax
from ..messages import Message, MessageBatch
from ..models.re_ranker import SECOND
from ..ops.dialog_ops import exact_products
from ..ops.exact_sums import all_products, on_grid
from ..protocol import Observations, ReadingOptions
from ..registry import registry
from ..teachers import Teacher
from .beginnings import Carried
from .candidate_vectors import CandidateVectors
from .collating import Collate
from .judged import Inputs, Judged
from .lone_replies import LoneReplies
from .model_agent import ModelAgent, has_rectangles, no_labels, no_layer
from .ranking import best_of, best_places
from .repeats import kept_setting, shall_block

# Number of candidates to score at once, whose vectors fit into the cache of a CPU core.
N_AT_ONCE = 1024
Candidates = Literal["batch", "batch_all", "inline", "fixed", "vocab"]


@registry.agents("thincdialog.Ranker.v1")
class RankerAgent(ModelAgent):
    """Ranks candidate replies: encodes conversations and replies as vectors, and answers with the
    reply closest to the conversation.

    In training, replies are ranked against ``candidates``. In a chat, the agent chooses from the
    message's ``label_candidates``, or if it has none, from the fixed candidates, which are encoded
    only once. An evaluation uses the same candidates as a chat unless ``eval_candidates`` is set.

    model (Model): A bi-encoder, ``thincdialog.BiEncoder.v1``.
    loss (Optional[Callable]): A registered ranking loss; softmax if None.
    candidates (str): Candidates that the right reply is ranked against in training: "batch" (the
        right replies of the other examples in the batch, so batches of one example teach nothing),
        "inline" (the message's ``label_candidates``), "batch_all" (the ``label_candidates`` of all
        messages in the batch), "fixed" (the fixed candidates) or "vocab" (the words of the
        vocabulary).
    eval_candidates (Optional[str]): Candidates in an evaluation, with the same values as
        ``candidates``; if None, those of a chat. Scores with "batch" and "batch_all" depend on the
        batches. With ``[evaluation] n_candidates``, only "inline" may be set.
    ignore_bad_candidates (bool): Whether training skips examples whose label is not among their
        candidates; otherwise they are an error. In an evaluation, such an example counts as wrong.
    fixed_candidates (Optional[str]): File of candidates, one per line; if None, the replies of the
        training data.
    max_fixed_candidates (int): Maximum number of fixed candidates, of which the most frequent are
        kept.
    history_size (int): Number of turns that the model reads, including the current one; -1 for all.
    max_context (int): Maximum number of tokens of these turns, of which the last are kept; 0 for no
        limit.
    max_label (int): Maximum number of tokens of a reply, of which the first are kept; 0 for no
        limit.
    delimiter (bool): Whether a ``<turn>`` token separates turns.
    speaker_tokens (bool): Whether each turn starts with a token for its speaker.
    segments (str): Unit that the model can distinguish: "turn" or "line".
    use_reply (str): Which text the history keeps as the agent's own turns: "label" (the right
        reply, or the agent's reply if the right one is unknown), "model" (the agent's reply;
        nothing in training, where the agent does not answer) or "none".
    block_repeats (Optional[bool]): Whether candidates that repeat the message, an earlier turn of
        the conversation or a line of one rank below all others, in a chat, in ``predict`` and in an
        evaluation, with any history_size; if None, only if fewer than one in fifty training labels
        are such repeats.
    collate (Optional[Callable]): A registered function that builds the input of the context encoder
        from a batch, such as texts and images; if None, the input is the texts. With a function,
        the model needs a separate ``candidate_encoder``.
    RAISES (ValueError): If max_fixed_candidates is below 1.
    """

    id = "ranker"

    def __init__(
        self,
        model: Model,
        loss: Optional[Callable] = None,
        candidates: Candidates = "batch",
        eval_candidates: Optional[Candidates] = None,
        ignore_bad_candidates: bool = False,
        fixed_candidates: Optional[str] = None,
        max_fixed_candidates: int = 50000,
        history_size: int = -1,
        max_context: int = 256,
        max_label: int = 64,
        delimiter: bool = True,
        speaker_tokens: bool = False,
        segments: Literal["turn", "line"] = "turn",
        use_reply: Literal["label", "model", "none"] = "label",
        block_repeats: Optional[bool] = None,
        collate: Optional[Collate] = None,
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
            collate=collate,
            history_size=history_size,
            max_context=max_context,
            max_label=max_label,
            delimiter=delimiter,
            speaker_tokens=speaker_tokens,
            segments=segments,
            use_reply=use_reply,
        )
        self.loss = no_layer("loss", loss) or RankingSoftmax()
        self.candidates = candidates
        self.eval_candidates = eval_candidates
        self.uses_candidates = eval_candidates in (None, "inline")
        self.replies_need_batch = eval_candidates in ("batch", "batch_all")
        self.ignore_bad_candidates = ignore_bad_candidates
        self.fixed_path = fixed_candidates
        self.own_files = () if fixed_candidates is None else (fixed_candidates,)
        self.max_fixed_candidates = max_fixed_candidates
        self.fixed: List[str] = []
        self.words: List[str] = []
        self.block_repeats = block_repeats
        self.blocks_repeats = bool(block_repeats)
        self.lone_replies = LoneReplies()
        self._vectors = CandidateVectors()
        # A list, and the index of each text in it.
        self._numbered: Tuple[List[str], Dict[str, int]] = ([], {})

    def weights_changed(self) -> None:
        self._vectors.forget()

    def replica(self) -> "RankerAgent":
        replica = super().replica()
        replica._vectors = CandidateVectors()
        return replica

    def reading(self) -> ReadingOptions:
        path, options = self.fixed_path, super().reading()
        # A saved model contains its candidates, so it does not need the file.
        labels = None if path is None else self.fixed or read_candidates(path)
        return options._replace(labels=labels)

    def reachable(self, example: Message) -> Optional[Collection[str]]:
        own: Optional[Sequence[str]] = example.get("label_candidates")
        source = self.eval_candidates
        if source in ("batch", "batch_all"):
            return None  # The possible replies depend on the other examples of the batch.
        if source == "inline" or (source is None and own):
            return own
        return self._numbers(self.words if source == "vocab" else self.fixed) or None

    # --- candidates -------------------------------------------------------------------

    def survey(self, train: Teacher) -> None:
        # Read all labels, even if a file has the candidates: this counts the data that is left out,
        # which processes with a share of the data cannot do, and the tokenizer uses the same pass.
        # Keep at least two labels, to know whether a batch can have other labels to rank against.
        found = train.order.frequent_labels(max(2, self.max_fixed_candidates))
        if self.candidates == "batch" and len(found) == 1:
            text = f"has only one reply, {found[0]!r}: there are no others to rank it against."
            remedy = 'Add others with candidates = "fixed" or "inline" in [agent].'
            raise DataError(train.order.origin, f"{text} {remedy}")
        self.lone_replies = LoneReplies(train.n_examples)
        if self.fixed_path is not None:
            found = read_candidates(self.fixed_path)
        elif not found:
            raise no_labels(train)
        # Words are set with the tokenizer.
        self.fixed = [] if self.candidates == "vocab" else found[: self.max_fixed_candidates]
        self.blocks_repeats = shall_block(self.block_repeats, train)

    def carry_over(self, state: Mapping[str, Any]) -> Carried:
        """Append the saved ranker's replies to those of the training data, up to the maximum."""
        before = texts_in(state, "fixed_candidates") if "fixed_candidates" in state else ()
        if self.fixed_path is not None or self.candidates == "vocab":
            return Carried()
        n_own = len(self.fixed)
        known = dict.fromkeys([*self.fixed, *before])
        self.fixed = list(known)[: self.max_fixed_candidates]
        n_more = len(self.fixed) - n_own
        return Carried([f"candidates: {n_own:,} replies from the data, {n_more:,} from the model"])

    def set_tokenizer(self, tokenizer: Optional[Tokenizer]) -> None:
        super().set_tokenizer(tokenizer)
        for name in ("candidates", "eval_candidates"):
            if getattr(self, name) == "vocab":
                words = getattr(tokenizer, "vocabulary", None)
                if words is None:
                    text = f"[agent] {name} = 'vocab', but [tokenizer] has no vocabulary"
                    raise ConfigError([Problem("", text, "use thincdialog.Words.v1")], "config")
                self.words = list(words.tokens)
        if self.candidates == "vocab":
            self.fixed = self.words

    def state(self) -> Dict[str, Any]:
        return {"fixed_candidates": self.fixed, "blocks_repeats": self.blocks_repeats}

    def set_state(self, state: Dict[str, Any]) -> None:
        self.fixed = texts_in(state, "fixed_candidates")
        if not self.fixed:
            raise ValueError("no fixed_candidates")
        self.blocks_repeats = kept_setting(self.block_repeats, state)

    def sample(self) -> Sequence[Any]:
        return [(self.sample_inputs(), self.replies(["a"]))]

    # --- lengths ----------------------------------------------------------------------

    def padded_fields(self) -> Tuple[bool, ...]:
        encoders = map(self.model.get_ref, ("context_encoder", "candidate_encoder"))
        return tuple(map(has_rectangles, encoders))

    def batch_lengths(self, observations: Observations) -> Lengths:
        """Count the tokens of each observation's context and label; 0 for the label if there are no
        ``labels`` to learn from. (A label that several rows of a batch share is encoded once, and
        candidates that are not labels are not counted.)"""
        batch = Batch.of(observations)
        counts = np.zeros((len(batch), 2), dtype=np.int64)
        counts[:, CONTEXT] = self.text.context_lengths(batch)
        labelled = batch.labelled()
        if len(labelled.rows):
            has_label = batch.label_ids != NO_LABEL
            counts[has_label, LABEL] = self.text.label_lengths(labelled)
        return Lengths(counts, self.padded)

    # --- learning ---------------------------------------------------------------------

    def read(self, batch: Batch) -> Optional[Inputs]:
        good, places = self._good_rows(batch), None
        if good is not None:
            count("ignored_examples", len(batch.rows) - len(good))
            batch, places = batch.take(good), good.tolist()
        if not len(batch.rows):
            return None
        if self.candidates == "batch":
            contexts, labels, numbers = self.text.pairs(batch)
            tokens, candidates = self.ragged(contexts, CONTEXT), self.ragged(labels, LABEL)
            texts = partial(_in_order, numbers, batch.choices)
            choices = Choices(numbers[: len(batch.rows)], texts)
        else:
            tokens = self.contexts(batch)
            choices = self._listed_choices(batch)
            among = choices.texts()
            candidates = self.replies(among, lowest_limits(batch, choices.right, len(among)))
        return Inputs(batch, (self.collated(batch, tokens), candidates), choices, places)

    def _listed_choices(self, batch: Batch) -> "Choices":
        """Return the candidates of the examples, unless they are each other's labels."""
        allowed: Optional[np.ndarray] = None
        if self.candidates in ("fixed", "vocab"):
            numbered = self._numbers(self.fixed)
        else:
            lists = batch.column("label_candidates")
            numbered = _number(each for of_row in lists for each in of_row)
            if self.candidates == "inline":
                allowed = np.zeros((len(lists), len(numbered)), dtype=bool)
                for index, of_row in enumerate(lists):
                    allowed[index, [numbered[each] for each in of_row]] = True
        right = np.array([numbered[each] for each in batch.first_labels()], dtype="i")
        among = list(numbered)
        return Choices(right, lambda: among, allowed)

    def judge(self, Y: Floats2d, inputs: Inputs) -> Judged:
        n_candidates = len(inputs.X[1].lengths)
        self.check_scores(Y, (len(inputs.batch.rows), n_candidates))  # (n_examples, n_candidates)
        choices, allowed = inputs.targets, inputs.targets.allowed
        if not self.lone_replies.is_over:
            n = n_candidates if allowed is None else int(allowed.sum(axis=1).max())
            self.lone_replies.see(n)
        return self.judge_scores(
            Y, inputs.batch, self.loss, choices.right, allowed, choices.texts, allowed=allowed
        )

    def _good_rows(self, batch: Batch) -> Optional[np.ndarray]:
        """Return the rows of a batch whose labels are among their candidates; None if all are.

        RAISES (DataError): If a label is not among its candidates and ``ignore_bad_candidates`` is
            false.
        """
        if self.candidates == "batch":
            return None
        labels, what = batch.first_labels(), "label_candidates"
        known: Sequence[Any] = [texts or () for texts in batch.column(what)]
        if self.candidates in ("fixed", "vocab"):
            known, what = [self._numbers(self.fixed)] * len(labels), f"{self.candidates} candidates"
        is_good = np.array([label in texts for label, texts in zip(labels, known)], dtype=bool)
        if is_good.all():
            return None
        if self.ignore_bad_candidates:
            return np.flatnonzero(is_good)
        at = int(is_good.argmin())
        found = f"has the label {labels[at]!r}, which is not among its" if known[at] else "has no"
        is_cut = self.candidates == "fixed" and len(self.fixed) == self.max_fixed_candidates
        first = "Raise max_fixed_candidates" if is_cut else "Correct the data"
        remedy = f'{first}, or set candidates = "batch" or ignore_bad_candidates = true'
        text = f"example {batch.ids()[at]} {found} {what}. {remedy} in [agent]."
        raise DataError("training data", text)

    # --- answering --------------------------------------------------------------------

    def answer(self, batch: Observations) -> Sequence[Message]:
        batch = Batch.of(batch)
        lists = self._choices(batch)
        inputs = self.inputs(batch)
        with exact_products(self.model.ops):
            vectors = self._comparable(self.model.get_ref("context_encoder").predict(inputs))
        said = batch.said() if self.blocks_repeats else [set[str]()] * len(lists)
        repeats = [self._repeats(texts, of_row) for texts, of_row in zip(lists, said)]
        scores = self._scores(vectors, lists)
        if self.model.has_ref(SECOND):
            self._rerank(inputs, lists, scores)
        names = ("text", "text_candidates", "candidate_scores", "candidate_probabilities", "loss")
        columns: Dict[str, Any] = {name: [] for name in names}
        for texts, of_row, is_repeat, labels in zip(
            lists, scores, repeats, batch.column("eval_labels")
        ):
            right = self._place_of(texts, labels)
            best = best_of(of_row, self.n_ranked, is_repeat, right)
            ranked = [texts[index] for index in best.places.tolist()]
            numbers = (best.scores.tolist(), best.probabilities.tolist(), best.loss)
            for name, value in zip(names, (ranked[0], ranked, *numbers)):
                columns[name].append(value)
        return MessageBatch(columns, len(lists))

    def _choices(self, batch: Batch) -> List[Sequence[str]]:
        """Return the candidates of each row; rows may share a list.

        RAISES (DataError): If a row has an empty list, or has no list although it needs one.
        """
        given, labels = batch.column("label_candidates"), batch.column("eval_labels")
        source = self.eval_candidates
        scored = [bool(right) and source is not None for right in labels]
        needs_list = source in ("inline", "batch_all")
        for row, texts in enumerate(given):
            if not texts and (texts is not None or (scored[row] and needs_list)):
                name = batch.ids()[row]
                who = "the message" if name is None else f"example {name}"
                if texts is not None:
                    raise DataError("data", f"{who} has an empty list of label_candidates.")
                remedy = 'Give them, or set eval_candidates = "fixed" in [agent]'
                raise DataError("data", f"{who} has no label_candidates. {remedy}.")
        pool: Sequence[str] = self.fixed
        if source == "vocab":
            pool = self.words
        elif source in ("batch", "batch_all"):
            of_rows = given if source == "batch_all" else [(right or [""])[:1] for right in labels]
            pool = list(dict.fromkeys(t for of, each in zip(scored, of_rows) if of for t in each))
        return [
            pool if is_scored and source != "inline" else texts or self.fixed
            for texts, is_scored in zip(given, scored)
        ]

    def _scores(self, vectors: Floats2d, lists: Sequence[Sequence[str]]) -> List[np.ndarray]:
        """Score the candidates of each row, float32. The scores do not depend on the other rows.

        vectors (Floats2d): Vector of each row's context.
        lists (Sequence): Candidates of each row.
        """
        known, encode = self._vectors, self._encode_candidates
        lasting = [id(self.fixed), id(self.words)]
        rows_of: Dict[int, List[int]] = {}
        for row, texts in enumerate(lists):
            rows_of.setdefault(id(texts), []).append(row)
        passing = [rows[0] for key, rows in rows_of.items() if key not in lasting]
        if passing:  # Encoding all of these texts at once is faster.
            known.of([text for row in passing for text in lists[row]], encode)
        found = [np.zeros(0, dtype="f")] * len(lists)
        for key, rows in rows_of.items():
            candidates = (known.of_lasting if key in lasting else known.of)(lists[rows[0]], encode)
            contexts = vectors[self.model.ops.asarray1i(rows)]
            for row, of_row in zip(rows, self._score_all(contexts, candidates)):
                found[row] = of_row
        return found

    def _score_all(self, contexts: Any, candidates: Any) -> np.ndarray:
        """Score each context with each candidate; shape (n_contexts, n_candidates), on the host."""
        ops: Any = self.model.ops
        scorer = self.model.maybe_get_ref("scorer")
        if scorer is None and ops.xp is np:
            return all_products(contexts, candidates)
        with exact_products(ops):
            if scorer is not None:
                some = 8192 if ops.device_type == "gpu" else N_AT_ONCE
                starts = range(0, len(candidates), some)
                found = [scorer.predict((contexts, candidates[at : at + some])) for at in starts]
                return ops.to_numpy(ops.xp.concatenate(found, axis=1))
            return ops.to_numpy(ops.gemm(contexts, candidates, trans2=True))

    def _rerank(
        self, inputs: Ragged, lists: Sequence[Sequence[str]], scores: Sequence[np.ndarray]
    ) -> None:
        """Add the scores of a second model to those of each row's best candidates."""
        ops, n_best = self.model.ops, self.model.attrs["n_best"]
        best = [best_places(of_row, n_best) for of_row in scores]
        numbers: Dict[str, int] = {}
        pairs = [
            (row, numbers.setdefault(lists[row][column], len(numbers)))
            for row, columns in enumerate(best)
            for column in columns.tolist()
        ]
        with counting(Counter()):
            X = (inputs, self.replies(list(numbers)), np.array(pairs, dtype="i"))
        with exact_products(ops):
            more = ops.to_numpy(self.model.get_ref(SECOND).predict(X))[:, 0]  # (n_pairs,)
        ends = np.cumsum([len(columns) for columns in best])
        for of_row, columns, of_pairs in zip(scores, best, np.split(more, ends[:-1])):
            of_row[columns] += of_pairs

    def _repeats(self, texts: Sequence[str], said: Collection[str]) -> Optional[np.ndarray]:
        """Return which of a row's candidates repeat a turn; bools, shape (n_candidates,); None if
        there are no turns."""
        if not said:
            return None
        if texts is not self.fixed:
            return np.array([text in said for text in texts], dtype=bool)
        places = self._numbers(self.fixed)
        is_repeat = np.zeros(len(texts), dtype=bool)
        is_repeat[[places[text] for text in said if text in places]] = True
        return is_repeat

    def _numbers(self, texts: List[str]) -> Dict[str, int]:
        """Return the number of each fixed candidate; all are distinct."""
        numbered = self._numbered
        if numbered[0] is not texts:
            numbered = self._numbered = texts, _number(texts)
        return numbered[1]

    def _place_of(self, texts: Sequence[str], right: Optional[Sequence[str]]) -> int:
        """Return the index of an example's right candidate; -1 if it is not known, or not a
        candidate."""
        if not right:
            return -1
        if texts is self.fixed:
            return self._numbers(self.fixed).get(right[0], -1)
        return texts.index(right[0]) if right[0] in texts else -1

    def _encode_candidates(self, texts: List[str]) -> Floats2d:
        ops, encoder = self.model.ops, self.model.get_ref("candidate_encoder")
        chunk = 8192 if ops.device_type == "gpu" else 512  # A large batch costs a GPU little.
        starts = range(0, len(texts), chunk)
        # These texts depend on the batches and the worker, so their tokens are not counted.
        with exact_products(ops), counting(Counter()):
            blocks = [encoder.predict(self.replies(texts[at : at + chunk])) for at in starts]
        return self._comparable(ops.xp.concatenate(blocks))

    def _comparable(self, vectors: Any) -> Any:
        """Round vectors so that their products are the same in any batch. On the host, also convert
        them to float64 in column order, in which BLAS multiplies many vectors by one fastest."""
        if self.model.has_ref("scorer"):
            return vectors
        found = on_grid(vectors)
        return found.astype("float64", order="F") if self.model.ops.xp is np else found


class Choices(NamedTuple):
    """Hold the candidates of the examples in a batch.

    right (np.ndarray): Index of each example's right candidate, shape (n_examples,), int32.
    texts (Callable): Returns the candidates.
    allowed (Optional[np.ndarray]): Which candidates belong to each example, bools, shape
        (n_examples, n_candidates); None if all do.
    """

    right: np.ndarray
    texts: Callable[[], Sequence[str]]
    allowed: Optional[np.ndarray] = None


def _in_order(numbers: np.ndarray, batch: Batch) -> List[str]:
    """Return the distinct labels of a batch, sorted by their numbers."""
    texts = dict(zip(numbers.tolist(), batch.first_labels()))
    return [texts[number] for number in range(len(texts))]


def _number(texts: Any) -> Dict[str, int]:
    """Number the distinct texts in order of first occurrence."""
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}
