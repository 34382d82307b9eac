"""BLEU, computed by sacrebleu: n-grams that replies share with the labels."""

from typing import Any, Dict, Literal, Optional, Sequence, Tuple

import numpy

from ..errors import ConfigError, Problem, importing
from ..messages import Message
from ..registry import registry
from .example_metric import ExampleMetric
from .metric import Metric, Sums, merged


@registry.metrics("thincdialog.BLEU.v1")
class BLEU(ExampleMetric):
    """Compute corpus BLEU of all replies, each against all its labels; higher is better. Equal to
    ``sacrebleu.corpus_bleu`` with the same options. Needs the extra `bleu`.

    Reports `bleu`, 0.0 to 100.0.

    tokenize (str): One of sacrebleu's tokenizers: "13a", "intl", "char", "zh", "none", ...
    lowercase (bool): Whether to ignore case.
    max_ngram_order (int): Longest n-grams to count, 1 or more.
    smooth_method (str): Smoothing for orders without a match: "exp", "floor", "add-k" or "none".
    smooth_value (Optional[float]): Value for "floor" and "add-k"; sacrebleu's default if null.
    effective_order (bool): Leave out orders longer than all replies.
    RAISES (ConfigError): If there is no such tokenizer, or the order is less than 1.
    RAISES (MissingPackageError): If sacrebleu is not installed.
    SOURCE: Papineni et al. 2002, https://aclanthology.org/P02-1040; Post 2018,
        https://arxiv.org/abs/1804.08771
    """

    def __init__(
        self,
        tokenize: str = "13a",
        lowercase: bool = False,
        max_ngram_order: int = 4,
        smooth_method: Literal["exp", "floor", "add-k", "none"] = "exp",
        smooth_value: Optional[float] = None,
        effective_order: bool = False,
    ):
        if max_ngram_order < 1:
            text = f"'max_ngram_order' of thincdialog.BLEU.v1 is {max_ngram_order}"
            raise ConfigError([Problem("", text, "give 1 or more")])
        # Settings for the score that is computed from the counts.
        self.sums: Tuple[int, ...] = ()
        self.settings: Dict[str, Any] = {
            "smooth_method": smooth_method,
            "smooth_value": smooth_value,
            "effective_order": effective_order,
            "max_ngram_order": max_ngram_order,
        }
        bleu = _sacrebleu()
        if tokenize not in bleu.TOKENIZERS:
            text = f"'tokenize' of thincdialog.BLEU.v1 is {tokenize!r}"
            raise ConfigError([Problem("", text, f"choose one of: {', '.join(bleu.TOKENIZERS)}")])
        # For counting only: smoothing and orders are applied to the summed counts.
        self.counter = bleu(
            tokenize=tokenize,
            lowercase=lowercase,
            max_ngram_order=max_ngram_order,
            smooth_method="none",
            effective_order=True,
            force=True,
        )
        self.reset()

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example; a reply without text counts as an empty reply."""
        score = self.counter.sentence_score(reply.get("text") or "", list(labels))
        counts = (score.sys_len, score.ref_len, *score.counts, *score.totals)
        self.sums = merged(self.sums, counts)

    def report(self) -> Dict[str, Metric]:
        """Return `bleu`."""
        return {"bleu": CorpusBLEU(self.sums, self.settings)}

    def reset(self) -> None:
        """Forget all counts."""
        self.sums = (0,) * (2 + 2 * self.settings["max_ngram_order"])


class CorpusBLEU(Metric):
    """Compute BLEU from summed counts.

    counts (Sequence[int]): Number of words in the replies and in the nearest labels, matching
        n-grams of each order, all n-grams of each order.
    settings (Dict[str, Any]): Arguments of sacrebleu's ``compute_bleu``.
    """

    higher_is_better = True
    summed = ("counts",)

    def __init__(self, counts: Sequence[int], settings: Dict[str, Any]):
        self.counts = tuple(counts)
        self.settings = settings

    def value(self) -> float:
        """Return BLEU, 0.0 to 100.0."""
        return self._score(self.counts)

    def _score(self, counts: Sequence[int]) -> float:
        n = self.settings["max_ngram_order"]
        score = _sacrebleu().compute_bleu(
            correct=list(counts[2 : 2 + n]),
            total=list(counts[2 + n :]),
            sys_len=counts[0],
            ref_len=counts[1],
            **self.settings,
        )
        return float(score.score)

    def sums(self) -> Optional[Sums]:
        """Return the counts."""
        return dict(enumerate(self.counts))

    def value_of(self, sums: Sums) -> numpy.ndarray:
        """Return BLEU of each resample."""
        columns = numpy.stack([sums[place] for place in range(len(self.counts))], axis=1)
        return numpy.array([self._score(row) for row in columns.astype(int).tolist()])


def _sacrebleu() -> Any:
    with importing("bleu", "thincdialog.BLEU.v1"):
        from sacrebleu import metrics
    return metrics.BLEU
