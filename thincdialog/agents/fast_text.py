"""A linear classifier of words and n-grams whose training step is one compiled kernel."""

from typing import Any, Dict, List, Literal, Optional, Tuple, Union

import numpy as np
from thinc.api import Model

from ..examples.batch import Batch
from ..files.json_file import numbers_in
from ..ops.compiled import load_kernels
from ..ops.rows_apart import Tokens
from ..optimizers.row_sparse import RowSparseOptimizer
from ..optimizers.sparse_sgd import SparseSGD
from ..registry import registry
from .classifier import ClassifierAgent
from .compiled_steps import CompiledSteps
from .negatives import check_negatives, draw_classes

# Negative sampling draws a class as often as the root of its examples' number says, times
# this, as a whole number.
_UNIT = 1000


@registry.agents("thincdialog.FastText.v1")
class FastTextAgent(CompiledSteps, ClassifierAgent):
    """The fastest classifier to train: fastText's, with a step for each example, all in one
    compiled kernel. Use it with the tokenizer ``thincdialog.WordNgrams.v1``.

    Answers as ``thincdialog.Classifier.v1`` does. Training runs on the CPU and needs numba
    (``pip install 'thincdialog[fast]'``); answering needs neither. Its optimizer is
    ``thincdialog.SparseSGD.v1``, whose step is an example's, not a batch's; fastText's own
    learning rate is 0.1 to 1.0 at first and falls in a straight line to 0
    (``thincdialog.WarmupLinear.v1``).

    model (Model): ``thincdialog.FastText.v1``.
    negatives (int): Wrong classes that each example is compared with, drawn by the root of
        their frequency, each by a logistic loss of its own: for thousands of classes
        (probabilities of replies are the softmax of the scores all the same). 0 for the
        softmax over all classes, 1,000,000 at most.
    classes (Optional[List[str]]): All classes; from the training labels if None.
    class_weights (Union[Dict[str, float], str, None]): See ``thincdialog.Classifier.v1``.
    reject_class, threshold: See ``thincdialog.Classifier.v1``.
    history_size (int): Turns that are classified, the last one included; -1 for all.
    max_context (int): Tokens of them, n-grams too, the last are kept; 0 for no limit.
    delimiter (bool): Whether there is a ``<turn>`` token between turns.
    speaker_tokens (bool): Whether each turn starts with its speaker's token.
    use_reply (str): What the history keeps as the agent's own turns.
    RAISES (ValueError): If a value is out of range, or the model is another one.
    SOURCE: Joulin et al. 2016, https://arxiv.org/abs/1607.01759
    """

    id = "fast_text"
    kernels = "fast_text"
    optimizers = (SparseSGD,)

    def __init__(
        self,
        model: Model,
        negatives: int = 0,
        classes: Optional[List[str]] = None,
        class_weights: Union[Dict[str, float], str, None] = None,
        reject_class: Optional[str] = None,
        threshold: Union[float, str] = 0.0,
        history_size: int = 1,
        max_context: int = 0,
        delimiter: bool = True,
        speaker_tokens: bool = False,
        use_reply: Literal["label", "model", "none"] = "none",
    ):
        check_negatives(negatives, 0, ", or 0 for the softmax")
        if not (model.has_ref("table") and model.has_ref("output")):
            raise ValueError(
                f"[agent.model] is '{model.name}', but this agent trains only "
                '@models = "thincdialog.FastText.v1"'
            )
        super().__init__(
            model,
            classes=classes,
            class_weights=class_weights,
            reject_class=reject_class,
            threshold=threshold,
            history_size=history_size,
            max_context=max_context,
            delimiter=delimiter,
            speaker_tokens=speaker_tokens,
            use_reply=use_reply,
        )
        self.negatives = negatives

    def state(self) -> Dict[str, Any]:
        return {**super().state(), "class_counts": self.class_counts}

    def set_state(self, state: Dict[str, Any]) -> None:
        super().set_state(state)
        self.class_counts = numbers_in(state, "class_counts", int)

    # --- learning ---------------------------------------------------------------------

    def learn(self, batch: Batch) -> None:
        """Keep the batch, ready for the kernel, till ``update``."""
        targets = self.targets(batch).astype(np.int32)
        texts = self.text.pack(batch, has_labels=False)
        # The classes that each example is about; none where it is about all.
        candidates = np.zeros((len(targets), 0), dtype=np.int32)
        if self.negatives:
            masses = np.ceil(_UNIT * np.sqrt(np.maximum(self.class_counts, 1))).astype(np.int64)
            candidates = draw_classes(self.generator, targets, masses, self.negatives)
        packed = (texts.contexts, texts.context_starts, targets, candidates)
        self.keep(packed, batch, len(texts.contexts))

    def learn_pack(
        self, packed: Any, optimizer: RowSparseOptimizer, losses: np.ndarray
    ) -> Tuple[int, float]:
        ids, *others = packed
        table, output = map(self.model.get_ref, ("table", "output"))
        begin = self.parameters.offset_of(output, "W")
        # Every example uses all classes, or draws some.
        classes = Tokens(begin, np.arange(len(self.classes), dtype="i"), uses=len(losses))
        needed = [self.tokens("table", ids), classes]
        nothing = np.zeros(0, dtype="f")
        weights = self.loss_weights or [1.0] * len(self.classes)
        learned: Tuple[int, float] = load_kernels("fast_text").learn_batch(
            *self.rows_apart.prepare(self.parameters.values, nothing, table.get_dim("nO"), needed),
            *others,
            np.array(weights, dtype="f"),
            float(optimizer.learn_rate),
            float(optimizer.grad_clip),
            losses,
        )
        return learned
