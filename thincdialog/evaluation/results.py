"""Hold the result of a training run, and format its scores as tables."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Container, Dict, List, Mapping, Optional, Sequence, Tuple

from ..messages import Message
from ..metrics.usual import is_added

Exchange = Tuple[Message, Message]
# Metrics that tables show first, in this order, if they were measured.
FIRST = (
    "hits@1", "accuracy", "micro_f1", "macro_f1", "exact_match", "micro_precision", "micro_recall",
    "mrr", "hits@5", "hits@10", "f1", "perplexity", "loss",
)  # fmt: skip
# Metrics of the words of a reply. The F1 of classes is macro_f1 or weighted_f1.
OF_WORDS = ("precision", "recall", "f1")
COUNT = "examples"
MACRO, ALL = "macro", "all"


@dataclass
class Result:
    """Hold the result of ``train``.

    scores (Dict[str, Dict[str, float]]): Split to metric to value, with the best weights;
        see ``evaluate`` for the names of metrics with several tasks.
    baselines (Dict[str, Dict[str, Dict[str, float]]]): Name of each baseline to its scores.
    score_name (str): The metric that was optimised.
    stopped_because (str): Reason why training ended.
    best_step (int): Step of the best weights.
    seconds (float): Training time in seconds, without evaluation.
    n_parameters (int): Number of weights.
    samples (List[List[Exchange]]): A few conversations with the model's replies.
    output (Optional[Path]): Folder that holds model-best and model-last; None if nothing is saved.
    train_examples (Dict[str, int]): Task ("" if there is only one) to its number of training
        examples, if they were counted.
    can_chat (bool): Whether the model reads only text.
    has_classes (bool): Whether the model's replies are classes.
    reads_files (bool): Whether the training data is read from files.
    choices (Dict[int, int]): Number of possible replies to an example (0 if not known) to the
        number of labelled examples with this number of replies, in the test split, or in dev if
        there is no test; empty if the split is large.
    left_out (Dict[str, int]): File to the number of its conversations or examples that were left
        out.
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
    train_examples: Dict[str, int] = field(default_factory=dict)
    can_chat: bool = True
    has_classes: bool = False
    reads_files: bool = False
    choices: Dict[int, int] = field(default_factory=dict)
    left_out: Dict[str, int] = field(default_factory=dict)

    def agents(self, split: str) -> Dict[str, Dict[str, float]]:
        """Return the scores of the model and of each baseline on a split, by name."""
        baselines = {name: reports[split] for name, reports in self.baselines.items()}
        return {"this model": self.scores[split], **baselines}

    def table(self) -> List[List[str]]:
        """Return a table, header first, with rows for the model and each baseline on each split.
        With several tasks, there are such rows for each task, for the mean over the tasks
        ("macro"), and for all examples together ("all")."""
        parts = {split: report_parts(report) for split, report in self.scores.items()}
        has_tasks = any(list(found) != [ALL] for found in parts.values())
        first = self.score_name.rpartition("/")[2] if has_tasks else self.score_name
        names = shown_metrics([part for found in parts.values() for part in found.values()], first)
        rows = [["", *(["task"] if has_tasks else []), "agent", *names, COUNT]]
        for split, found in parts.items():
            agents = {name: report_parts(each) for name, each in self.agents(split).items()}
            for task in found:
                where = [split, task] if has_tasks else [split]
                rows += [[*where, name, *cells(part[task], names)] for name, part in agents.items()]
        return rows


def report_parts(report: Mapping[str, float]) -> Dict[str, Dict[str, float]]:
    """Split a report on several tasks into parts: one for each task, "macro" and "all". With one
    task, the only part is "all"."""
    tasks = [name[: -len(COUNT) - 1] for name in report if name.endswith(f"/{COUNT}")]
    prefixes = {f"{name}/": name for name in tasks}
    if prefixes:
        prefixes[f"{MACRO}/"] = MACRO
    parts: Dict[str, Dict[str, float]] = {name: {} for name in (*prefixes.values(), ALL)}
    for name, value in report.items():
        prefix = next((known for known in prefixes if name.startswith(known)), "")
        parts[prefixes.get(prefix, ALL)][name[len(prefix) :]] = value
    return parts


def task_table(
    report: Mapping[str, float], intervals: Mapping[str, Tuple[float, float]]
) -> List[List[str]]:
    """Return a table of a report on several tasks, header first, with a row for each task, their
    mean ("macro"), and all examples together ("all").

    intervals (Mapping): Metric name to the ends of its interval, if it has one.
    """
    parts = report_parts(report)
    names = shown_metrics(list(parts.values()), "")
    rows = []
    for task, part in parts.items():
        prefix = "" if task == ALL else f"{task}/"
        values = cells(part, names)
        for place, name in enumerate(names):
            if ends := intervals.get(prefix + name):
                values[place] += f" [{ends[0]:.3f}, {ends[1]:.3f}]"
        rows.append([task, *values])
    return [["task", *names, COUNT], *rows]


def shown_metrics(reports: Sequence[Mapping[str, float]], first: str, most: int = 5) -> List[str]:
    """Return the names of the metrics that get a column: the optimised metric, the metrics that the
    config has added, and usual metrics until there are ``most`` columns.

    reports (Sequence[Mapping[str, float]]): The reports to show, metric name to value.
    first (str): Name of the optimised metric; "" for none.
    """
    found = dict.fromkeys(name for report in reports for name in report)
    added = [name for name in found if is_added(name)]
    names = [name for name in dict.fromkeys((first, *added, *FIRST)) if name in found]
    return names[: max(most, len({first, *added} & set(names)))]


def is_of_words(name: str, names: Container[str]) -> bool:
    """Return whether a score is of single words, although there are scores of classes, too.

    name (str): Name of the score.
    names (Container[str]): Names of all scores, each with its task if there are several.
    """
    task, slash, last = name.rpartition("/")
    return last in OF_WORDS and f"{task}{slash}macro_f1" in names


def cells(report: Mapping[str, float], names: Sequence[str]) -> List[str]:
    """Return the cells of a row: the values of a report as text, "-" if a metric was not measured,
    and the number of examples."""
    values = [f"{report[name]:.3f}" if name in report else "-" for name in names]
    return [*values, f"{int(report[COUNT])}" if COUNT in report else "-"]
