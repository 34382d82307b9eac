"""A linear classifier of words and n-grams, trained by one compiled kernel."""

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

# Negative sampling draws a class with a probability proportional to the square root of its number
# of examples. The root is scaled by this factor and rounded up to an integer.
_UNIT = 1000


@registry.agents("thincdialog.FastText.v1")
class FastTextAgent(CompiledSteps, ClassifierAgent):
    """Classifies with fastText's linear model, the classifier that trains fastest: one compiled
    kernel makes a separate step for each example. Use it with the tokenizer
    ``thincdialog.WordNgrams.v1``.

    The agent answers like ``thincdialog.Classifier.v1``. Training runs on the CPU and needs numba
    (``pip install 'thincdialog[fast]'``); answering needs neither. Use the optimizer
    ``thincdialog.SparseSGD.v1``. Because each step has one example instead of a batch, choose the
    learning rate as in fastText: 0.1 to 1.0 at first, with a linear decay to 0
    (``thincdialog.WarmupLinear.v1``).

    model (Model): ``thincdialog.FastText.v1``.
    negatives (int): Number of wrong classes to contrast each example with, for data with thousands
        of classes. Each class is drawn with a probability proportional to the square root of its
        frequency, and has a logistic loss of its own. (The probabilities of replies are still the
        softmax of the scores.) 0 for the softmax over all classes; 1,000,000 at most.
    classes (Optional[List[str]]): All classes; from the training labels if None.
    class_weights (Union[Dict[str, float], str, None]): See ``thincdialog.Classifier.v1``.
    reject_class, threshold: See ``thincdialog.Classifier.v1``.
    history_size (int): Number of turns to classify, including the last one; -1 for all.
    max_context (int): Maximum number of tokens of these turns, including n-grams, of which the last
        are kept; 0 for no limit.
    delimiter (bool): Whether a ``<turn>`` token separates turns.
    speaker_tokens (bool): Whether each turn starts with a token for its speaker.
    use_reply (str): Which text the history keeps as the agent's own turns: "label", "model" or
        "none".
    RAISES (ValueError): If a value is out of range, or the model is not
        ``thincdialog.FastText.v1``.
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
        self.check_model(model, "thincdialog.FastText.v1", "table", "output")
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
        """Prepare the batch for the kernel, and keep it until ``update``."""
        targets = self.targets(batch).astype(np.int32)
        texts = self.text.pack(batch, has_labels=False)
        # The classes that each example is trained on; no columns if it is trained on all classes.
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
        # Every example uses all classes, or the classes that were drawn for it.
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
