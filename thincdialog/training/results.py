"""What a training run found, and how it is shown."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ..messages import Message

Exchange = Tuple[Message, Message]
# Shown first, in this order, where they were measured.
FIRST = ("hits@1", "accuracy", "mrr", "hits@5", "hits@10", "macro_f1", "f1", "perplexity", "loss")


@dataclass
class Result:
    """Outcome of ``train``.

    scores (Dict[str, Dict[str, float]]): Split to metric to value, with the best weights.
    baselines (Dict[str, Dict[str, Dict[str, float]]]): The same for each baseline.
    score_name (str): The metric that was optimised.
    stopped_because (str): Why training ended.
    best_step (int): Step of the best weights.
    seconds (float): Training time, evaluation not counted.
    n_parameters (int): Number of weights.
    samples (List[List[Exchange]]): A few conversations with the model's replies.
    output (Optional[Path]): Folder that holds model-best and model-last.
    """

    score_name: str
    stopped_because: str
    best_step: int
    seconds: float
    n_parameters: int
    scores: Dict[str, Dict[str, float]] = field(default_factory=dict)
    baselines: Dict[str, Dict[str, Dict[str, float]]] = field(default_factory=dict)
    samples: List[List[Exchange]] = field(default_factory=list)
    output: Optional[Path] = None

    def table(self) -> List[List[str]]:
        """Header and rows: each split, the model first, then the baselines."""
        names = shown_metrics(list(self.scores.values()), self.score_name)
        rows = [["", "agent", *names, "examples"]]
        for split, report in self.scores.items():
            rows.append([split, "this model", *cells(report, names)])
            for baseline, reports in self.baselines.items():
                if split in reports:
                    rows.append([split, baseline, *cells(reports[split], names)])
        return rows


def shown_metrics(reports: Sequence[Mapping[str, float]], first: str, most: int = 5) -> List[str]:
    """Names of the metrics worth a column: the optimised one, then the usual ones."""
    found = {name for report in reports for name in report}
    return [name for name in dict.fromkeys((first, *FIRST)) if name in found][:most]


def cells(report: Mapping[str, float], names: Sequence[str]) -> List[str]:
    """A report's values as text, "-" where one was not measured, and its examples."""
    values = [f"{report[name]:.3f}" if name in report else "-" for name in names]
    return [*values, f"{int(report.get('examples', 0))}"]
