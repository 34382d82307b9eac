"""``debug data``: read all data of a config, and report its content and likely problems."""

import math
import sys
from collections import Counter
from typing import Dict, Iterable, Optional, Sequence, TextIO, Tuple

from ..config import ConfigLike
from ..data.tokenizers.vocabulary_tokenizer import VocabularyTokenizer
from ..errors import DataError
from ..evaluation.unreachable import Unreachable, find_unreachable
from ..formats.context import BadData, BadDataError, tolerating
from ..messages import SPLITS
from ..training.experiment import CodeLike, Experiment, Overrides
from ..training.reading_bar import reading_bar
from .data_checks import run_checks
from .data_comparison import report_split
from .data_report import DataReport, SplitReport
from .data_survey import Reading, Survey
from .paddings import find_paddings

# Number of examples per class below which data has this name, and the accuracies to expect.
REGIMES = (
    (8, "Very small", "63 to 89 %"), (25, "Small", "75 to 92 %"), (100, "Medium", "89 to 96 %"),
    (math.inf, "Large", "92 to 99 %"),
)  # fmt: skip


def debug_data(
    config: ConfigLike,
    *,
    splits: Optional[Sequence[str]] = None,
    overrides: Overrides = None,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> DataReport:
    """Read all data of a config and report on it, without building a model's weights.

    The training data is always read, because other splits are compared with it. Equal examples are
    found by fingerprints, which take 56 bytes for each example, so streamed data may be larger than
    memory; other data is kept in memory as in training. Labels that are not among their candidates
    are an error in training, but are counted here. Rows that cannot be read do not stop the report:
    if they may be skipped, the report counts them; otherwise, a single error lists all of them.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    splits (Optional[Sequence[str]]): Splits to report on; all if None.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file or files to import first.
    stderr (Optional[TextIO]): Stream for progress; sys.stderr if None.
    RAISES (BadDataError): If rows cannot be read and must not be skipped; lists all of them.
    RAISES (DialogError): If the config or the data cannot be used.
    """
    experiment = Experiment.from_config(config, overrides, code, on_cpu=True)
    bad: Dict[str, BadData] = {}
    with experiment.working(), tolerating(outside_labels=True, bad_data=bad):
        try:
            report = _report(experiment, splits, stderr or sys.stderr)
        except DataError:
            if not bad:
                raise
        if bad:
            raise BadDataError(list(bad.values()))
        return report


def _report(experiment: Experiment, splits: Optional[Sequence[str]], stream: TextIO) -> DataReport:
    wanted = list(splits or SPLITS)
    for split in splits or ["train"]:
        experiment.check_data(split)
    tokenizer, agent, tasks = experiment.tokenizer, experiment.agent, experiment.tasks
    if tokenizer is not None and tokenizer.needs_texts:
        with reading_bar(stream) as progress:
            tokenizer.build(experiment.training_split().texts(), progress)
    reading = Reading(agent, tokenizer)
    known = None
    if isinstance(tokenizer, VocabularyTokenizer):
        vocabulary = tokenizer.vocabulary
        known = dict(zip(vocabulary.tokens, vocabulary.counts))
    surveys = {
        (name, split): Survey(task.for_split(split, training=split == "train"), reading)
        for split in SPLITS
        for name, task in tasks.items()
        if split in task.splits and (split in wanted or split == "train")
    }
    train = [survey for (_, split), survey in surveys.items() if split == "train"]
    for (name, split), survey in surveys.items():
        if known is None and split != "train":
            known = _gathered(train)
        with reading_bar(stream, f"Reading {name} {split}", "examples") as progress:
            survey.read(known, progress)
    n_known = len(known if known is not None else _gathered(train))
    unreachable = _unreachable(experiment, [split for split in wanted if split != "train"])
    reports = []
    for name, split in [(name, split) for name in tasks for split in wanted]:
        if (name, split) in surveys:
            lost = unreachable.get((name, split), Unreachable())
            part = report_split(name, split, surveys[name, split], train, lost)
            if experiment.stores is not None:
                part.store = experiment.stores.about(name, split)
            reports.append(part)
    report = DataReport(reports, reading.has_classes, reading.has_label_sets, n_known)
    run_checks(report)
    if "train" in wanted:
        experiment.choose(experiment.training_split())
        if reading.has_classes and all(map(_is_short_text, reports)):
            report.regime = regime(reports)
        report.paddings, report.pads = find_paddings(experiment, reading), any(agent.padded)
    return report


def _is_short_text(part: SplitReport) -> bool:
    """Return whether examples are single texts, as the examples of ``regime`` are, and not images
    or the turns of a conversation."""
    return "text words" in part.lengths and part.lengths["turns"].longest == 1


def regime(reports: Sequence[SplitReport]) -> str:
    """Describe the size of training data with classes, and the accuracy to expect."""
    sizes = [part.n_examples / max(1, part.n_labels) for part in reports if part.split == "train"]
    name, accuracy = next(found for most, *found in REGIMES if min(sizes) < most)
    return (
        f"{name} data: {min(sizes):,.0f} training examples per class. On data of this size, "
        f"configs/intent.cfg was right on {accuracy} of three test sets (docs/small-data.md)."
    )


def _unreachable(
    experiment: Experiment, splits: Sequence[str]
) -> Dict[Tuple[str, str], Unreachable]:
    """Return the labels that the agent could never give in an evaluation, by task and split. Empty
    for classes, because the check "new labels" reports these labels."""
    agent, splits = experiment.agent, list(filter(experiment.has_split, splits))
    if agent.has_classes or not splits:
        return {}
    try:
        agent.survey(experiment.training_split())
    except DataError:
        return {}  # For example, the data has no labels. Training raises the error.
    (only, *_) = experiment.tasks
    return {
        (name or only, split): found
        for split in splits
        for name, found in find_unreachable(agent, experiment.evaluation_split(split)).items()
    }


def _gathered(surveys: Iterable[Survey]) -> Dict[str, int]:
    return sum((survey.gathered for survey in surveys), Counter())
