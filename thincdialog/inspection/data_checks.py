"""Checks that add warnings to a report on data."""

from itertools import chain
from typing import Iterator, List, Tuple, Union

from ..evaluation.unreachable import IN_NO_LIST, MOST_SHARE, Unreachable
from ..formats.context import why_without
from ..formats.wording import short
from .data_report import DataReport, DataWarning, ExampleGroup, SplitReport

CHECKS = (
    "reading", "size", "texts", "labels", "candidates", "class sizes", "balance", "new labels",
    "duplicates", "contradictions", "overlap", "ids", "unknown words", "truncation",
)  # fmt: skip
# Limits of the warnings. Shares are fractions of the examples of a split, unless stated otherwise.
MIN_TRAIN = 100  # Training examples of a task.
MIN_OF_CLASS = 10  # Training examples of a class.
MAX_LABEL = 0.9  # Share of the most frequent training label.
MAX_DUPLICATES = 0.1  # Share of training examples that repeat an earlier one.
MAX_CONTRADICTIONS = 0.01  # Share of training examples whose input also has another class.
MAX_OVERLAP = 0.01  # Share of dev or test examples that are in the training data.
MAX_UNKNOWN = 0.05  # Unknown words, as a share of all words.
MAX_TRUNCATED = 0.1  # Truncated contexts, or labels, as a share of these.
# Name of the check, finding, and hint.
Finding = Tuple[str, str, str]
# Plural forms of verbs to their singular forms.
_OF_ONE = {"have": "has", "are": "is"}


def run_checks(report: DataReport) -> None:
    """Fill in the warnings of a report and the names of the checks that passed."""
    found: List[DataWarning] = []
    for part in report.splits:
        classes = report.has_classes
        noun = "label" if report.has_label_sets else "class"
        findings = (_of_examples(part), _of_labels(part, noun if classes else ""),
                    _of_repeats(part, classes), _of_words(part))  # fmt: skip
        for check, text, hint in chain(*findings):
            found.append(DataWarning(check, part.task, part.split, text, hint))
    # Sorted by check, then by task and split.
    report.warnings += sorted(found, key=lambda warning: CHECKS.index(warning.check))
    names = {warning.check for warning in found}
    report.passed += [name for name in CHECKS if name not in names]


def _of_examples(part: SplitReport) -> Iterator[Finding]:
    # A split held out of the training files has the same problems as these.
    for bad in part.skipped if part.split == "train" or not part.held_out else ():
        of_all = f"of {bad.n_read + bad.n_skipped:,} {bad.unit} of {bad.path}"
        if bad.n_skipped:
            text = f"{bad.n_skipped:,} {of_all} cannot be read and are skipped"
            named = "; ".join(bad.first[:3])
            yield "reading", f"{text}: {named}", 'fix them; on_bad_data = "error" lists them all'
        if bad.n_without:
            text = f"{bad.n_without:,} {of_all} are left out: {why_without(bad.unit)}"
            yield "reading", text, "training leaves them out: check that this is intended"
        if bad.note:
            yield "reading", f"{bad.path}: {bad.note}", "check that this is intended"
    if part.null_labels:
        named = ", ".join(f"{label!r} ({count:,})" for label, count in part.null_labels)
        yield "labels", f"labels that may be missing values: {named}", "correct or rename them"
    see = "check that the fields have the names that the teacher reads"
    not_used = "they are neither trained on nor scored"
    for check, some, what, hint in (
        ("texts", part.without_text, "neither text nor features", see),
        ("texts", part.empty_text, "an empty text", "fill it in or leave them out"),
        ("labels", part.without_label, "no label", not_used),
        ("labels", part.empty_label, "an empty label", "fill it in or leave them out"),
    ):
        if some.count:
            yield check, f"{_share(some, 'have', f', such as {some.ids[0]}')} {what}", hint
    if part.repeated_ids.count:
        text = f"{_share(part.repeated_ids, 'have')} the id of an earlier example"
        hint = "training refuses them: give each example a unique id"
        yield "ids", f"{text}: {_names(part.repeated_ids)}", hint
    elif part.shared_ids:
        text = f"{part.shared_ids} conversations have the id of an earlier one"
        yield "ids", text, "give each a unique id, or keep its turns together"


def _of_labels(part: SplitReport, noun: str) -> Iterator[Finding]:
    """Yield findings about labels.

    noun (str): "class" or "label", the word for labels if they are classes; else "".
    """
    plural = {"class": "classes", "label": "labels"}.get(noun)
    is_train = part.split == "train"
    if is_train and part.n_examples < MIN_TRAIN:
        examples = "example" if part.n_examples == 1 else "examples"
        text = f"only {part.n_examples} training {examples} (fewer than {MIN_TRAIN})"
        yield "size", text, "collect more, or expect low scores"
    if part.outside.count:
        text = f"{_share(part.outside, 'have')} a label that is not a candidate"
        ids = ", ".join(part.outside_examples)
        hint = "add it to the candidates or classes"
        yield "candidates", f"{text}: {_names(part.outside)} (first in {ids})", hint
    if part.unreachable.share > MOST_SHARE:
        text = f"{part.unreachable.text()} {IN_NO_LIST}: {_names(part.unreachable)}"
        yield "candidates", text, part.unreachable.remedy
    if noun and is_train and part.n_rare_classes:
        name, count = (part.rare_labels or part.frequent_labels)[-1]
        text = f"{part.n_rare_classes} of {part.n_labels} {plural} have fewer than "
        text += f"{MIN_OF_CLASS} examples, the fewest '{name}': {count}"
        yield "class sizes", text, f"collect more of them, or merge {plural}"
    for name, count in part.frequent_labels[: int(is_train)]:
        if count > MAX_LABEL * part.n_examples:
            text = f"{_percent(count / part.n_examples)} of the examples have the same label"
            hint = "an agent that always predicts it has this accuracy; see macro averages"
            yield "balance", f"{text}, {short(name, 40)}", hint
    if noun and part.new_labels.count:
        text = f"{_share(part.new_labels, 'have')} a {noun} that the training data lacks"
        hint = "no classifier can predict it; split the data again, or set [agent] threshold, and "
        hint += f"reject_class to the {noun} of texts that are out of scope"
        yield "new labels", f"{text}: {_names(part.new_labels)}", hint


def _of_repeats(part: SplitReport, has_classes: bool) -> Iterator[Finding]:
    is_train = part.split == "train"
    if is_train and part.duplicates.share > MAX_DUPLICATES:
        text = f"{_share(part.duplicates, 'have')} the input and labels of an earlier example"
        yield "duplicates", f"{text}: {_names(part.duplicates)}", "they count more than others"
    if has_classes and is_train and part.contradictions.share > MAX_CONTRADICTIONS:
        text = f"{_share(part.contradictions, 'have')} an input that has another label elsewhere"
        hint = "correct one of the labels"
        yield "contradictions", f"{text}: {_names(part.contradictions)}", hint
    if part.shared:
        yield "overlap", part.shared, "give each split its own file, or set dev_share"
    elif part.in_train.share > MAX_OVERLAP:
        text = f"{_share(part.in_train, 'are')} also in the training data"
        hint = "scores on them measure memorisation; remove them from one side"
        yield "overlap", f"{text}: {_names(part.in_train)}", hint
    if part.near_train.share > MAX_OVERLAP:
        text = f"{_share(part.near_train, 'are')} similar to training data"
        hint = "scores on them may measure memorisation; check whether both are from one source"
        yield "overlap", f"{text}: {_names(part.near_train)}", hint


def _of_words(part: SplitReport) -> Iterator[Finding]:
    share = part.n_unknown / max(1, part.n_words)
    if share > MAX_UNKNOWN:
        words = ", ".join(word for word, _ in part.unknown_words[:5])
        text = f"{_percent(share)} of the words are unknown: {words}"
        hint = "check where the texts come from; a tokenizer with a vocabulary can keep more words"
        yield "unknown words", text, hint
    for name, share in part.truncated.items():
        if share > MAX_TRUNCATED:
            length = part.lengths[f"{name[:-1]} tokens"]
            text = f"{_percent(share)} of the {name} are truncated (95 % have up to "
            setting = "max_context (or history_size)" if name == "contexts" else "max_label"
            text += f"{length.most_95:,} tokens)"
            yield "truncation", text, f"see [agent] {setting}"


def _share(some: ExampleGroup, verb: str, such_as: str = "") -> str:
    share = f"({_percent(some.share)}{such_as})"
    if some.count == 1:
        return f"1 example {share} {_OF_ONE[verb]}"
    return f"{some.count:,} examples {share} {verb}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 or not share else "< 0.1 %"


def _names(some: Union[ExampleGroup, Unreachable]) -> str:
    return ", ".join(short(text, 40) for text in some.ids[:3])
