"""A ranker of bags of embeddings, trained by one compiled kernel."""

from typing import Callable, List, Literal, Optional, Tuple

import numpy as np
from thinc.api import Model

from ..data.turn_store import PackedTexts
from ..errors import DataError
from ..examples.batch import Batch
from ..losses.ranking import RankingHinge, RankingSoftmax
from ..ops.compiled import load_kernels
from ..optimizers.row_sparse import RowSparseOptimizer
from ..optimizers.sparse_sgd import SparseAdagrad, SparseSGD
from ..optimizers.state import KEY
from ..registry import registry
from ..teachers import Teacher
from .compiled_steps import CompiledSteps
from .negatives import check_negatives, draw_negatives
from .ranker import Candidates, RankerAgent

_POWERS = {"mean": 1.0, "sqrt": 0.5, "sum": 0.0}


@registry.agents("thincdialog.StarSpace.v1")
class StarSpaceAgent(CompiledSteps, RankerAgent):
    """Ranks candidates by embeddings of conversations and replies, and trains faster than any other
    ranker: one compiled kernel makes a separate step for each example, in which the right reply is
    ranked against a few wrong ones.

    The agent answers like ``thincdialog.Ranker.v1``. Training runs on the CPU and needs numba
    (``pip install 'thincdialog[fast]'``); answering needs neither. Use the optimizer
    ``thincdialog.SparseSGD.v1`` or ``thincdialog.SparseAdagrad.v1`` (here with one sum of squares
    for each row of the table). Each step has one example instead of a batch.

    model (Model): ``thincdialog.StarSpace.v1``.
    loss (Optional[Callable]): ``thincdialog.RankingHinge.v1`` with the mean of its negatives, or
        ``thincdialog.RankingSoftmax.v1``; the hinge loss if None.
    negatives (int): Number of wrong replies for each example, 1 to 1,000,000.
    candidates (str): Replies to draw the wrong ones from: "batch" (the right replies of the batch;
        the fixed candidates if all of these are the same) or "fixed".
    eval_candidates (Optional[str]): Candidates in an evaluation; if None, those of a chat. See
        ``thincdialog.Ranker.v1``.
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
    use_reply (str): Which text the history keeps as the agent's own turns: "label", "model" or
        "none"; see ``thincdialog.Ranker.v1``.
    block_repeats (Optional[bool]): Whether candidates that repeat something said in the
        conversation rank below all others; see ``thincdialog.Ranker.v1``.
    RAISES (ValueError): If negatives or max_fixed_candidates is out of range, or the agent cannot
        train with the loss or the model.
    SOURCE: Wu et al. 2017, https://arxiv.org/abs/1709.03856
    """

    id = "star_space"
    kernels = "starspace"
    optimizers = (SparseAdagrad, SparseSGD)

    def __init__(
        self,
        model: Model,
        loss: Optional[Callable] = None,
        negatives: int = 10,
        candidates: Literal["batch", "fixed"] = "batch",
        eval_candidates: Optional[Candidates] = None,
        fixed_candidates: Optional[str] = None,
        max_fixed_candidates: int = 50000,
        history_size: int = -1,
        max_context: int = 256,
        max_label: int = 64,
        delimiter: bool = True,
        speaker_tokens: bool = False,
        use_reply: Literal["label", "model", "none"] = "label",
        block_repeats: Optional[bool] = None,
    ):
        check_negatives(negatives, 1)
        self.check_model(model, "thincdialog.StarSpace.v1", "label_table")
        loss = loss or RankingHinge()
        is_hinge = isinstance(loss, RankingHinge) and loss.negatives == "mean"
        if not is_hinge and not isinstance(loss, RankingSoftmax):
            raise ValueError(
                '[agent.loss] must be "thincdialog.RankingHinge.v1" with negatives = "mean", or '
                '"thincdialog.RankingSoftmax.v1": the kernel supports no other'
            )
        super().__init__(
            model,
            loss=loss,
            candidates=candidates,
            eval_candidates=eval_candidates,
            fixed_candidates=fixed_candidates,
            max_fixed_candidates=max_fixed_candidates,
            history_size=history_size,
            max_context=max_context,
            max_label=max_label,
            delimiter=delimiter,
            speaker_tokens=speaker_tokens,
            use_reply=use_reply,
            block_repeats=block_repeats,
        )
        self.negatives = negatives

    def survey(self, train: Teacher) -> None:
        super().survey(train)
        if len(self.fixed) < 2:
            raise DataError(
                self.fixed_path or train.order.origin,
                f"has only one reply, {self.fixed[0]!r}: there are no others to rank it against.",
            )

    # --- learning ---------------------------------------------------------------------

    def learn(self, batch: Batch) -> None:
        """Prepare the batch for the kernel, and keep it until ``update``."""
        n = len(batch.rows)
        ids = batch.label_ids
        is_batch = self.candidates == "batch" and bool((ids != ids[0]).any())
        pool = [] if is_batch else self._some_fixed(n + self.negatives)
        n_segments = self.model.get_ref("context_table").get_dim("nS")
        texts = self.text.pack(batch, pool, n_segments=n_segments)
        places = texts.numbers if is_batch else texts.numbers[n:]
        drawn = draw_negatives(self.generator, texts.numbers[:n], places, self.negatives)
        self.keep((texts, drawn), batch, len(texts.contexts) + len(texts.labels))

    def _some_fixed(self, n: int) -> List[str]:
        if len(self.fixed) <= n:
            return self.fixed
        drawn = self.generator.choice(len(self.fixed), n, replace=False, shuffle=False)
        return [self.fixed[number] for number in drawn.tolist()]

    def learn_pack(
        self,
        packed: Tuple[PackedTexts, np.ndarray],
        optimizer: RowSparseOptimizer,
        losses: np.ndarray,
    ) -> Tuple[int, float]:
        (texts, candidates), values = packed, self.parameters.values
        squares = [*optimizer.state_arrays(KEY, values), np.zeros(0, dtype="f")][0]
        needed = [
            self.tokens("context_table", texts.contexts),
            self.tokens("label_table", texts.labels, uses=1 + self.negatives),
        ]
        attrs, loss = self.model.attrs, self.loss
        margin = float(loss.margin) if isinstance(loss, RankingHinge) else 0.0
        # Settings of the score, the loss and the optimizer's step.
        settings = (
            attrs["similarity"] == "cosine",
            isinstance(loss, RankingSoftmax),
            _POWERS[attrs["pooling"]],
            float(attrs["scale"]),
            margin,
            *map(float, (optimizer.learn_rate, optimizer.eps, optimizer.grad_clip)),
        )
        width = self.model.get_ref("context_table").get_dim("nO")
        learned: Tuple[int, float] = load_kernels("starspace").learn_batch(
            *self.rows_apart.prepare(values, squares, width, needed),
            texts.context_starts,
            texts.label_starts,
            candidates,
            settings,
            losses,
        )
        return learned
