"""Scores of the tokens of a label, for agents that predict them one by one."""

from typing import Dict, Sequence

from ..messages import Message
from ..registry import registry
from .exact import ExactSum
from .example_metric import ExampleMetric
from .metric import AverageMetric, Metric, PerplexityMetric


@registry.metrics("thincdialog.TokenScores.v1")
class TokenScores(ExampleMetric):
    """Measure how well the tokens of the label were predicted, each from the tokens before it.

    Reads `n_tokens` (int), `n_tokens_correct` (int) and `token_loss` (float, summed over tokens,
    nats) from a reply; a reply without `n_tokens` is not counted.

    Reports `token_accuracy`, 0.0 to 1.0, higher is better; and `perplexity`, 1.0 or more, lower is
    better.
    """

    def add(self, labels: Sequence[str], reply: Message) -> None:
        """Count one example."""
        n_tokens = reply.get("n_tokens")
        if n_tokens is None:
            return
        self.n_tokens += int(n_tokens)
        self.n_correct += int(reply["n_tokens_correct"])
        self.loss.add(reply["token_loss"])

    def report(self) -> Dict[str, Metric]:
        """Return `token_accuracy` and `perplexity`."""
        return {
            "token_accuracy": AverageMetric(self.n_correct, self.n_tokens),
            "perplexity": PerplexityMetric(self.loss, self.n_tokens),
        }

    def reset(self) -> None:
        """Forget all counts."""
        self.n_tokens = self.n_correct = 0
        self.loss = ExactSum()
