"""A ranker of bags of embeddings whose training step is one compiled kernel."""

from typing import Any, Callable, List, Literal, NamedTuple, Optional, Tuple

import numpy as np
from thinc.api import Model

from ..data.compiled_texts import PackedTexts
from ..errors import DataError
from ..losses.ranking import RankingHinge, RankingSoftmax
from ..messages import column
from ..models.parameters import KEY
from ..ops.compiled import load_kernels
from ..ops.rows_apart import Tokens
from ..optimizers.row_sparse import RowSparseOptimizer
from ..optimizers.sparse_sgd import SparseAdagrad, SparseSGD
from ..protocol import Observations
from ..registry import registry
from ..teachers import Teacher
from .compiled_steps import CompiledSteps
from .fields import CONTEXT, LABEL, NO_LIMIT, token_limits
from .negatives import draw_negatives
from .ranker import RankerAgent
from .training_labels import first_labels

_POWERS = {"mean": 1.0, "sqrt": 0.5, "sum": 0.0}


@registry.agents("thincdialog.StarSpace.v1")
def make_star_space(
    model: Model,
    loss: Optional[Callable] = None,
    negatives: int = 10,
    candidates: Literal["batch", "fixed"] = "batch",
    fixed_candidates: Optional[str] = None,
    max_fixed_candidates: int = 50000,
    history_size: int = -1,
    max_context: int = 256,
    max_label: int = 64,
    delimiter: bool = True,
    speaker_tokens: bool = False,
    use_reply: Literal["label", "model", "none"] = "label",
) -> "StarSpaceAgent":
    """The fastest ranker to train: embeddings of conversations and replies, each example
    told from a few wrong replies by a step of its own, all in one compiled kernel.

    Answers as ``thincdialog.Ranker.v1`` does. Training runs on the CPU and needs numba
    (``pip install 'thincdialog[fast]'``); answering needs neither. Its optimizer is
    ``thincdialog.SparseSGD.v1`` or ``thincdialog.SparseAdagrad.v1`` (here with one sum of
    squares for each row of the table), whose step is an example's, not a batch's.

    model (Model): ``thincdialog.StarSpace.v1``.
    loss (Optional[Callable]): ``thincdialog.RankingHinge.v1``, with the mean of its
        negatives, or ``thincdialog.RankingSoftmax.v1``; the hinge if None.
    negatives (int): Wrong replies for each example, 1 or more.
    candidates (str): What they are drawn from: "batch" (the right replies of the batch;
        the fixed candidates where these are all the same) or "fixed".
    fixed_candidates (Optional[str]): File of candidates, one a line; the training
        data's own replies if None.
    max_fixed_candidates (int): How many of these to keep, the most frequent first.
    history_size (int): Turns that the model sees, the current one included; -1 for all.
    max_context (int): Tokens of them, the last are kept; 0 for no limit.
    max_label (int): Tokens of a reply, the first are kept; 0 for no limit.
    delimiter (bool): Whether a ``<turn>`` token stands between turns.
    speaker_tokens (bool): Whether each turn starts with its speaker's token.
    use_reply (str): What the history keeps as the agent's own turns: "label", "model" or
        "none"; see ``thincdialog.Ranker.v1``.
    RAISES (ValueError): If negatives or max_fixed_candidates is below 1, or the loss or
        model is another one.
    SOURCE: Wu et al. 2017, https://arxiv.org/abs/1709.03856
    """
    for name, n in (("negatives", negatives), ("max_fixed_candidates", max_fixed_candidates)):
        if n < 1:
            raise ValueError(f"{name} = {n}, expected 1 or more")
    return StarSpaceAgent(
        model,
        loss=loss or RankingHinge(),
        negatives=negatives,
        candidates=candidates,
        fixed_candidates=fixed_candidates,
        max_fixed_candidates=max_fixed_candidates,
        history_size=history_size,
        max_context=max_context,
        max_label=max_label,
        delimiter=delimiter,
        speaker_tokens=speaker_tokens,
        use_reply=use_reply,
    )


class Packed(NamedTuple):
    """A batch as the kernel reads it; see ``ops/kernels/starspace.py``."""

    texts: PackedTexts
    candidates: np.ndarray


class StarSpaceAgent(CompiledSteps, RankerAgent):
    """See ``make_star_space``."""

    id = "star_space"
    kernels = "starspace"
    optimizers = (SparseAdagrad, SparseSGD)

    def __init__(self, model: Model, *, loss: Callable, negatives: int = 10, **options: Any):
        if not model.has_ref("label_table"):
            raise ValueError(
                f"[agent.model] is '{model.name}', but this agent trains only "
                '@models = "thincdialog.StarSpace.v1"'
            )
        is_hinge = isinstance(loss, RankingHinge) and loss.negatives == "mean"
        if not is_hinge and not isinstance(loss, RankingSoftmax):
            raise ValueError(
                '[agent.loss] must be "thincdialog.RankingHinge.v1" with negatives = "mean", or '
                '"thincdialog.RankingSoftmax.v1": the kernel knows no other'
            )
        super().__init__(model, loss=loss, **options)
        self.negatives = negatives

    def learn(self, train: Teacher) -> None:
        super().learn(train)
        if len(self.fixed) < 2:
            raise DataError(
                self.fixed_path or train.data_name,
                f"has one reply only, {self.fixed[0]!r}: there is nothing to tell it from.",
            )

    # --- learning ---------------------------------------------------------------------

    def train_batch(self, observations: Observations) -> None:
        """Keep the batch, ready for the kernel, till ``update``."""
        rights, turns = first_labels(observations), column(observations, "turns")
        limits = token_limits(observations, LABEL)
        found, n = self.text.find(turns, rights), len(rights)
        is_batch = self.candidates == "batch" and bool((found.labels != found.labels[0]).any())
        if not is_batch:
            pool = self._some_fixed(n + self.negatives)
            found = self.text.find(turns, [*rights, *pool])
            if limits is not None:
                limits = np.concatenate((limits, np.full(len(pool), NO_LIMIT)))
        n_segments = self.model.get_ref("context_table").get_dim("nS")
        texts = self.text.pack(found, n_segments, (token_limits(observations, CONTEXT), limits))
        self.counters.count_ragged(len(texts.contexts) + len(texts.labels))
        places = texts.numbers if is_batch else texts.numbers[n:]
        drawn = draw_negatives(self._generator(), texts.numbers[:n], places, self.negatives)
        self.keep(Packed(texts, drawn), observations)

    def _some_fixed(self, n: int) -> List[str]:
        if len(self.fixed) <= n:
            return self.fixed
        drawn = self._generator().choice(len(self.fixed), n, replace=False, shuffle=False)
        return [self.fixed[number] for number in drawn.tolist()]

    def _generator(self) -> np.random.Generator:
        ops: Any = self.model.ops  # ``seed`` sets it.
        return ops.generator

    def learn_pack(
        self, packed: Packed, optimizer: RowSparseOptimizer, losses: np.ndarray
    ) -> Tuple[int, float]:
        texts, candidates = packed
        values = self.parameters.values
        squares = [*optimizer.state_arrays(KEY, values), np.zeros(0, dtype="f")][0]
        tables = self._tables()
        steps = map(float, (optimizer.learn_rate, optimizer.eps, optimizer.grad_clip))
        needed = [
            Tokens(tables.contexts, tables.n_context_rows, texts.contexts),
            Tokens(tables.labels, tables.n_label_rows, texts.labels, uses=1 + self.negatives),
        ]
        learnt: Tuple[int, float] = load_kernels("starspace").learn_batch(
            *self.rows_apart.prepare(values, squares, tables.width, needed),
            texts.context_starts,
            texts.label_starts,
            candidates,
            (*self._settings(), *steps),
            losses,
        )
        return learnt

    def _settings(self) -> Tuple[bool, bool, float, float, float]:
        """Of score and loss, as the kernel takes them."""
        attrs, loss = self.model.attrs, self.loss
        is_softmax = isinstance(loss, RankingSoftmax)
        margin = 0.0 if is_softmax else float(loss.margin)  # type: ignore[attr-defined]
        is_cosine, power = attrs["similarity"] == "cosine", _POWERS[attrs["pooling"]]
        return is_cosine, is_softmax, power, float(attrs["scale"]), margin

    def _tables(self) -> "Tables":
        contexts, labels = map(self.model.get_ref, ("context_table", "label_table"))
        offset_of = self.parameters.offset_of
        return Tables(
            offset_of(contexts, "E"),
            offset_of(labels, "E"),
            contexts.get_dim("nO"),
            len(contexts.get_param("E")),
            len(labels.get_param("E")),
        )


class Tables(NamedTuple):
    """Where the embeddings of contexts and labels begin in the weights, their width, and
    the rows of each."""

    contexts: int
    labels: int
    width: int
    n_context_rows: int
    n_label_rows: int
