"""What a report of data warns of."""

from typing import Callable, Dict, Iterator, Sequence, Tuple

from .data_report import DataReport, DataWarning, Some, SplitReport

# What was found, and what can be done.
Finding = Tuple[str, str]
# Verbs of many, and of one.
_OF_ONE = {"have": "has", "were": "was", "are": "is"}


def run_checks(report: DataReport) -> None:
    """Fill in the warnings of a report, and the names of the checks that found nothing."""
    for name, check in CHECKS.items():
        found = [
            DataWarning(name, part.task, part.split, text, hint)
            for part in report.splits
            for text, hint in check(part, report)
        ]
        report.warnings += found
        if not found:
            report.passed.append(name)


def _size(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    limit = report.limits.min_train
    if part.split == "train" and part.n_examples < limit:
        examples = "example" if part.n_examples == 1 else "examples"
        text = f"only {part.n_examples} training {examples} (fewer than {limit})"
        yield text, "collect more, or expect little"


def _texts(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    hint = "see that the fields have the names that the teacher reads"
    yield from _lacking(part.without_text, "neither text nor features", hint)
    yield from _lacking(part.empty_text, "an empty text", "fill it in or leave them out")


def _labels(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    hint = "nothing is learnt from them, and they are not scored"
    yield from _lacking(part.without_label, "no label", hint)
    yield from _lacking(part.empty_label, "an empty label", "fill it in or leave them out")


def _candidates(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    if part.outside.count:
        text = (
            f"{_share(part.outside, 'have')} a label that is no candidate: {_names(part.outside)}"
        )
        ids = ", ".join(part.outside_examples)
        yield f"{text} (first in {ids})", "add it to the candidates or classes"


def _class_sizes(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    n_rare, limit = part.n_rare_classes, report.limits.min_of_class
    if report.has_classes and part.split == "train" and n_rare:
        rarest = (part.rare_labels or part.frequent_labels)[-1]
        text = f"{n_rare} of {part.n_labels} classes have fewer than {limit} examples"
        hint = "collect more of them, or join classes"
        yield f"{text}, the fewest '{rarest[0]}': {rarest[1]}", hint


def _balance(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    if part.split == "train" and part.frequent_labels:
        name, count = part.frequent_labels[0]
        if count > report.limits.max_label * part.n_examples:
            text = f"{_percent(count / part.n_examples)} of the examples have the same label"
            hint = "an agent that always says it scores as much; see macro averages"
            yield f"{text}, {_short(name)}", hint


def _new_labels(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    if report.has_classes and part.new_labels.count:
        text = f"{_share(part.new_labels, 'have')} a class that training lacks"
        yield f"{text}: {_names(part.new_labels)}", "no classifier can find it; split anew"


def _duplicates(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    if part.split == "train" and part.duplicates.share > report.limits.max_duplicates:
        text = f"{_share(part.duplicates, 'were')} there before, input and labels"
        yield f"{text}: {_names(part.duplicates)}", "they weigh more than others"


def _contradictions(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    if not report.has_classes or part.split != "train":
        return
    if part.contradictions.share > report.limits.max_contradictions:
        text = f"{_share(part.contradictions, 'have')} an input that has another label"
        yield f"{text} elsewhere: {_names(part.contradictions)}", "correct one of the labels"


def _overlap(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    if part.in_train.share > report.limits.max_overlap:
        text = f"{_share(part.in_train, 'are')} in the training data as they are"
        hint = "scores on them tell of memory; take them out of one side"
        yield f"{text}: {_names(part.in_train)}", hint


def _ids(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    if part.repeated_ids.count:
        text = f"{_share(part.repeated_ids, 'have')} an id that was there before"
        yield f"{text}: {_names(part.repeated_ids)}", "predictions cannot be told apart by it"
    elif part.shared_ids:
        text = f"{part.shared_ids} conversations have the id of an earlier one"
        yield text, "give each its own, or keep its turns together"


def _unknown(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    share = part.n_unknown / max(1, part.n_words)
    if share > report.limits.max_unknown:
        words = ", ".join(word for word, _ in part.unknown_words[:5])
        text = f"{_percent(share)} of the words are unknown: {words}"
        yield text, "keep more words ([tokenizer]), use subwords, or look at the sources"


def _truncation(part: SplitReport, report: DataReport) -> Iterator[Finding]:
    for name, share in part.truncated.items():
        if share > report.limits.max_truncated:
            length = part.lengths[f"{name[:-1]} tokens"]
            text = f"{_percent(share)} of the {name} are truncated (95 % have up to "
            setting = "max_context (or history_size)" if name == "contexts" else "max_label"
            yield f"{text}{length.most_95:,} tokens)", f"see [agent] {setting}"


CHECKS: Dict[str, Callable[[SplitReport, DataReport], Iterator[Finding]]] = {
    "size": _size,
    "texts": _texts,
    "labels": _labels,
    "candidates": _candidates,
    "class sizes": _class_sizes,
    "balance": _balance,
    "new labels": _new_labels,
    "duplicates": _duplicates,
    "contradictions": _contradictions,
    "overlap": _overlap,
    "ids": _ids,
    "unknown words": _unknown,
    "truncation": _truncation,
}


def _share(some: Some, verb: str, such_as: str = "") -> str:
    share = f"({_percent(some.share)}{such_as})"
    if some.count == 1:
        return f"1 example {share} {_OF_ONE[verb]}"
    return f"{some.count:,} examples {share} {verb}"


def _lacking(some: Some, what: str, hint: str) -> Iterator[Finding]:
    if some.count:
        yield f"{_share(some, 'have', f', such as {some.ids[0]}')} {what}", hint


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 or not share else "< 0.1 %"


def _names(some: Some, n_named: int = 3) -> str:
    names: Sequence[str] = [_short(name) for name in some.ids[:n_named]]
    return ", ".join(names)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text if len(text) <= 40 else text[:37] + '...'}'"
