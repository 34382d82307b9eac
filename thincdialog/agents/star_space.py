"""A ranker of bags of embeddings whose training step is one compiled kernel."""

import math
from typing import Any, Callable, Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from thinc.api import Model, Optimizer

from ..errors import ConfigError, DataError, Problem
from ..layers.bag_embed import rows_of_segments
from ..losses.ranking_hinge import RankingHinge, configure_ranking_hinge
from ..losses.ranking_softmax import RankingSoftmax
from ..messages import column
from ..metrics import AverageMetric
from ..models.parameters import KEY
from ..ops.compiled import load_kernels
from ..optimizers.row_sparse import RowSparseOptimizer
from ..optimizers.sparse_adagrad import SparseAdagrad
from ..optimizers.sparse_sgd import SparseSGD
from ..protocol import Observations
from ..registry import registry
from ..teachers import Teacher
from .negatives import draw_negatives
from .not_finite import not_finite
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
        loss=loss or configure_ranking_hinge(),
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

    contexts: np.ndarray
    context_starts: np.ndarray
    labels: np.ndarray
    label_starts: np.ndarray
    candidates: np.ndarray


class StarSpaceAgent(RankerAgent):
    """See ``make_star_space``."""

    id = "star_space"

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
        # Of the step to come; replaced, never changed, so that no copy shares it.
        self._packed: Tuple[Packed, ...] = ()

    def replica(self) -> "StarSpaceAgent":
        replica = super().replica()
        replica._packed = ()
        return replica

    def initialize(self, train: Teacher, **options: Any) -> None:
        load_kernels("starspace")  # Before any data is read: are they there?
        if self.model.ops.device_type != "cpu":
            text = f"[agent] {self.id} learns on the CPU only"
            raise ConfigError([Problem("", text, "set gpu_id = -1 in [system]")])
        super().initialize(train, **options)

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
        rights = first_labels(observations)
        pool: List[str] = rights
        if self.candidates == "fixed" or rights.count(rights[0]) == len(rights):
            pool = self._some_fixed(len(rights) + self.negatives)
        numbers = _number(rights)
        targets = np.array([numbers[text] for text in rights], dtype=np.int32)
        places = targets
        if pool is not rights:
            numbers = _number([*numbers, *pool])
            places = np.array([numbers[text] for text in pool], dtype=np.int32)
        texts = list(numbers)
        contexts = self.observed_contexts(observations)
        labels = self.replies(texts, self._candidate_limits(observations, texts, targets))
        ops, table = self.model.ops, self.model.get_ref("context_table")
        packed = Packed(
            rows_of_segments(ops, contexts.dataXd, table.get_dim("nS")),
            _starts(contexts.lengths),
            np.ascontiguousarray(labels.dataXd[:, 0]),
            _starts(labels.lengths),
            draw_negatives(self._generator(), targets, places, self.negatives),
        )
        self._packed = (*self._packed, packed)
        self.counters.ids.extend(column(observations, "id"))
        self.counters.examples += len(rights)

    def _some_fixed(self, n: int) -> List[str]:
        if len(self.fixed) <= n:
            return self.fixed
        drawn = self._generator().choice(len(self.fixed), n, replace=False, shuffle=False)
        return [self.fixed[number] for number in drawn.tolist()]

    def _generator(self) -> np.random.Generator:
        ops: Any = self.model.ops  # ``seed`` sets it.
        return ops.generator

    def update(self, optimizer: Optimizer) -> float:
        """Learn from the examples kept, one after another, with the optimizer's learning
        rate of this step.

        RETURNS (float): Root of the mean of the examples' squared gradient norms, before
            clipping; a row counts as often as the example has it.
        RAISES (ConfigError): If the optimizer is not one that the kernel knows.
        RAISES (TrainingError): If an example's loss is not finite; the weights are as
            those before it left them.
        """
        optimizer = self._known(optimizer)
        values = self.parameters.values
        squares = [*optimizer.state_arrays(KEY, values), np.zeros(0, dtype="f")][0]
        train_examples = load_kernels("starspace").train_examples
        tables, settings = self._tables(), self._settings()
        steps = (optimizer.learn_rate, optimizer.eps, optimizer.grad_clip)
        packs, self._packed = self._packed, ()
        loss, n_before, square = 0.0, 0, 0.0
        for packed in packs:
            losses = np.zeros(len(packed.candidates), dtype="f")
            n_learnt, of_pack = train_examples(
                values, squares, *tables, *packed, *settings, *map(float, steps), losses
            )
            if n_learnt < len(losses):
                raise not_finite("loss", [self.counters.ids[n_before + n_learnt]])
            n_before += n_learnt
            loss += float(losses.sum(dtype="d"))
            square += of_pack
        self.counters.loss = self.counters.loss + AverageMetric(loss, n_before)
        self.counters.updated()
        self.forget_computed()
        # No part of the weights is left to change: this counts the step, for averages too.
        optimizer.update_parts(KEY, values, values, [])
        optimizer.step_schedules()
        return math.sqrt(square / max(1, n_before))

    def _known(self, optimizer: Optimizer) -> RowSparseOptimizer:
        """The optimizer, if the kernel can do what it does."""
        problem = f"is {type(optimizer).__name__}, which {self.id} cannot use"
        hint = 'set @optimizers = "thincdialog.SparseAdagrad.v1" or "thincdialog.SparseSGD.v1"'
        if isinstance(optimizer, (SparseAdagrad, SparseSGD)):
            if not optimizer.L2:
                return optimizer
            problem, hint = f"has L2 = {optimizer.L2}, but {self.id} knows no decay", "set L2 = 0"
        raise ConfigError([Problem("", f"[training.optimizer] {problem}", hint)])

    def _settings(self) -> Tuple[bool, bool, float, float, float]:
        """Of score and loss, as the kernel takes them."""
        attrs, loss = self.model.attrs, self.loss
        is_softmax = isinstance(loss, RankingSoftmax)
        margin = 0.0 if is_softmax else float(loss.margin)  # type: ignore[attr-defined]
        is_cosine, power = attrs["similarity"] == "cosine", _POWERS[attrs["pooling"]]
        return is_cosine, is_softmax, power, float(attrs["scale"]), margin

    def _tables(self) -> Tuple[int, int, int]:
        """Where contexts' and labels' embeddings begin in the weights, and their width."""
        nodes = list(self.model.walk())
        offsets: Dict[int, int] = {
            id(nodes[slot.node]): slot.offset for slot in self.parameters.slots
        }
        contexts, labels = map(self.model.get_ref, ("context_table", "label_table"))
        return offsets[id(contexts)], offsets[id(labels)], contexts.get_dim("nO")


def _number(texts: Sequence[str]) -> Dict[str, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


def _starts(lengths: Any) -> np.ndarray:
    """Where each stretch begins, and the end of the last; shape (n + 1,), int64."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
