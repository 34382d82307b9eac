"""From what was counted in a split, and in the training data, to what is reported."""

from itertools import chain
from typing import Callable, Dict, Iterable, List, Sequence

import numpy as np

from ..teachers import Teacher
from .data_fingerprints import Fingerprints, contradictions, repeats
from .data_lengths import LengthCounts
from .data_report import Some, SplitReport
from .data_survey import UNLABELLED, Survey

# Labels and words that a report names of each kind, and examples.
N_NAMED = 10
N_IDS = 3


def report_split(
    task: str,
    split: str,
    survey: Survey,
    teacher: Teacher,
    train: Sequence[Survey],
    min_of_class: int,
) -> SplitReport:
    """What to say of a split.

    task, split (str): Their names.
    survey (Survey): Of the split.
    teacher (Teacher): Gives the ids of examples.
    train (Sequence[Survey]): Of the training data of all tasks.
    min_of_class (int): A class with fewer examples is rare.
    """
    pairs = survey.pairs.numbers()
    labelled = np.flatnonzero(survey.answers.numbers() != UNLABELLED)
    ids = repeats(survey.ids.numbers()).later
    # Examples of a kind by their numbers.
    found: Dict[str, np.ndarray] = {
        "duplicates": repeats(pairs).later,
        "contradictions": labelled[
            contradictions(survey.inputs.numbers()[labelled], pairs[labelled])
        ],
        "repeated_ids": ids,
    }
    new = np.zeros(0, dtype=np.int64)
    if split != "train":
        found["in_train"] = _common(survey, train, lambda each: each.pairs)
        found["input_in_train"] = _common(survey, train, lambda each: each.inputs)
        found["text_in_train"] = _common(survey, train, lambda each: each.texts)
        known = _common(survey, train, lambda each: each.answers)
        new = np.setdiff1d(labelled, known, assume_unique=True)
    wanted = chain.from_iterable(numbers[:N_IDS].tolist() for numbers in found.values())
    names = _ids(teacher, wanted)
    some = {
        name: _some(survey, len(numbers), [names[number] for number in numbers[:N_IDS].tolist()])
        for name, numbers in found.items()
    }
    for kind in ("without_text", "empty_text", "without_label", "empty_label"):
        some[kind] = _some(survey, survey.faults[kind], survey.faulty.get(kind, []))
    by_count = sorted(survey.labels.items(), key=lambda row: (-row[1], row[0]))
    # The last ones are not shown twice.
    rare = by_count[N_NAMED:][-N_NAMED:] if survey.reading.has_classes else []
    learnt = set().union(*(each.labels for each in train))
    new_labels = [name for name, _ in by_count if name not in learnt] if len(new) else []
    return SplitReport(
        task=task,
        split=split,
        n_episodes=survey.n_episodes,
        n_conversations=repeats(survey.conversations.numbers()).n_distinct,
        n_examples=survey.n_examples,
        lengths={
            name: counts.summary() for name, counts in _lengths(survey).items() if counts.counts
        },
        truncated=_truncated(survey),
        n_words=survey.n_words,
        n_unknown=survey.n_unknown,
        unknown_words=_most(survey.unknown.items()),
        n_labels=repeats(survey.answers.numbers()).n_distinct
        - bool(survey.faults["without_label"]),
        frequent_labels=by_count[:N_NAMED],
        rare_labels=rare,
        n_rare_classes=sum(count < min_of_class for _, count in by_count)
        if survey.reading.has_classes
        else 0,
        n_with_features=survey.n_with_features,
        new_labels=_some(survey, len(new), new_labels[:N_NAMED]),
        outside=_some(
            survey, survey.faults["outside"], [name for name, _ in _most(survey.outside.items())]
        ),
        outside_examples=survey.faulty.get("outside", []),
        shared_ids=len(repeats(survey.conversations.numbers()).later),
        **{**dict.fromkeys(("in_train", "input_in_train", "text_in_train"), Some()), **some},
    )


def _lengths(survey: Survey) -> Dict[str, LengthCounts]:
    return {
        "turns": survey.turns,
        "text words": survey.text_words,
        "label words": survey.label_words,
        "context tokens": survey.context_tokens,
        "label tokens": survey.label_tokens,
    }


def _truncated(survey: Survey) -> Dict[str, float]:
    reading, found = survey.reading, {}
    for name, limit, counts in (
        ("contexts", reading.max_context, survey.context_tokens),
        ("labels", reading.max_label, survey.label_tokens),
    ):
        if counts.counts:
            found[name] = counts.share_over(limit) if limit else 0.0
    return found


def _common(
    survey: Survey, train: Sequence[Survey], what: Callable[[Survey], Fingerprints]
) -> np.ndarray:
    """Numbers of the examples that have something in common with training ones."""
    others = np.concatenate([what(each).numbers() for each in train])
    return np.flatnonzero(np.isin(what(survey).numbers(), others))


def _some(survey: Survey, count: int, names: List[str]) -> Some:
    return Some(count, count / max(1, survey.n_examples), names)


def _most(counts: Iterable) -> List:
    return sorted(counts, key=lambda row: (-row[1], row[0]))[:N_NAMED]


def _ids(teacher: Teacher, numbers: Iterable[int]) -> Dict[int, str]:
    """Ids of examples by their numbers, read once more up to the last of them."""
    wanted = sorted(set(numbers))
    names: Dict[int, str] = {}
    if not wanted:
        return names
    missing = set(wanted)
    for number, message in enumerate(chain.from_iterable(teacher.episodes())):
        if number in missing:
            names[number] = str(message.get("id", number))
        if number >= wanted[-1]:
            break
    return names
