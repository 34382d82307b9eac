"""Make the report on a split from counts of the split and of the training data."""

from itertools import chain, islice
from typing import Dict, Iterable, List, Sequence, Set

import numpy as np

from ..evaluation.shared_file import shared_file
from ..evaluation.unreachable import Unreachable
from ..formats.spellings import is_null_like
from ..messages import Message
from .data_checks import MIN_OF_CLASS
from .data_lengths import LengthSurvey
from .data_report import ExampleGroup, SkippedData, SplitReport
from .data_survey import FORMS, UNLABELLED, Survey
from .near_duplicates import near_duplicates

# Maximum number of labels and words of each kind in a report, and of ids of examples.
N_NAMED = 10
N_IDS = 3


def report_split(
    task: str,
    split: str,
    survey: Survey,
    train: Sequence[Survey],
    unreachable: Unreachable,
) -> SplitReport:
    """Make the report on a split.

    task, split (str): Names of the task and the split.
    survey (Survey): Survey of the split.
    train (Sequence[Survey]): Surveys of the training data of all tasks.
    unreachable (Unreachable): Labels that the agent can never give.
    """
    data = survey.teacher.data[split]
    reading, pairs, answers = survey.reading, survey.prints("pairs"), survey.prints("answers")
    labelled = np.flatnonzero(answers != UNLABELLED)
    different = contradictions(survey.prints("inputs")[labelled], pairs[labelled])
    # Numbers of the examples of each kind.
    found: Dict[str, np.ndarray] = {
        "duplicates": repeats(pairs),
        "contradictions": labelled[different],
        "repeated_ids": repeats(survey.prints("ids")),
        **dict.fromkeys(("in_train", "input_in_train", "text_in_train", "near_train"), pairs[:0]),
    }
    new, near = pairs[:0], {}
    if split != "train":
        for kind, what in (("in", "pairs"), ("input_in", "inputs"), ("text_in", "texts")):
            found[f"{kind}_train"] = _in_train(survey, train, what)
        others = list(chain.from_iterable(each.word_sets() for each in train))
        near = near_duplicates(survey.word_sets(), others)
        numbers = np.array([*near], dtype=np.int64)
        found["near_train"] = np.setdiff1d(numbers, found["text_in_train"], assume_unique=True)
        new = np.setdiff1d(labelled, _in_train(survey, train, "answers"), assume_unique=True)
    differing = _of_each_label(survey, labelled) if reading.has_classes else []
    wanted = chain.from_iterable(numbers[:N_IDS].tolist() for numbers in found.values())
    messages = _messages([survey], [*wanted, *differing, *near])
    learned = _messages(train, near.values())
    names = {number: str(message.get("id", number)) for number, message in messages.items()}
    texts_of: Dict[str, List[str]] = {}
    for number in differing:
        labels = ", ".join(messages[number].all_labels)
        texts_of.setdefault(messages[number].get("text", ""), []).append(labels)
    some = {
        name: _group(survey, len(numbers), [names[number] for number in numbers[:N_IDS].tolist()])
        for name, numbers in found.items()
    }
    for kind in ("without_text", "empty_text", "without_label", "empty_label"):
        some[kind] = _group(survey, survey.faults[kind], survey.faulty.get(kind, []))
    by_count = sorted(survey.labels.items(), key=lambda row: (-row[1], row[0]))
    classes = by_count if reading.has_classes else []
    train_labels = set().union(*(each.labels for each in train))
    # Texts that are out of scope need no training examples.
    known: Set[str] = {*train_labels, reading.reject_class}
    new_labels = [name for name, _ in by_count if name not in known] if len(new) else []
    n_labels = len(answers) - len(repeats(answers)) - bool(survey.faults["without_label"])
    n_new = len(new) - sum(survey.labels[name] for name in known - train_labels)
    # With label sets, the answers are whole sets, so count single labels.
    if reading.has_label_sets:
        n_labels, n_new = len(by_count), sum(survey.labels[name] for name in new_labels)
    outside = [name for name, _ in _most(survey.outside.items())]
    conversations = survey.prints("conversations")
    n_shared = len(repeats(conversations))
    most = {"contexts": reading.max_context, "labels": reading.max_label}
    tokens = {name: survey.lengths[f"{name[:-1]} tokens"] for name in most}
    return SplitReport(
        task=task,
        split=split,
        n_episodes=survey.n_episodes,
        n_conversations=len(conversations) - n_shared,
        n_examples=survey.n_examples,
        lengths={
            name: LengthSurvey.of(counts) for name, counts in survey.lengths.items() if counts
        },
        truncated={
            name: sum(n for length, n in counts.items() if 0 < most[name] < length) / counts.total()
            for name, counts in tokens.items()
            if counts
        },
        n_words=survey.n_words,
        n_unknown=survey.n_unknown,
        unknown_words=_most(survey.unknown.items()),
        n_labels=n_labels,
        null_labels=[pair for pair in by_count if pair[0].strip() and is_null_like(pair[0])],
        frequent_labels=by_count[:N_NAMED],
        # The rarest labels, without those already shown as frequent.
        rare_labels=classes[N_NAMED:][-N_NAMED:],
        n_rare_classes=sum(count < MIN_OF_CLASS for _, count in classes),
        n_with_features=survey.n_with_features,
        pairs=[(*pair, count) for pair, count in _most(survey.pairs.items())],
        new_labels=_group(survey, n_new, new_labels[:N_NAMED]),
        outside=_group(survey, survey.faults["outside"], outside),
        outside_examples=survey.faulty.get("outside", []),
        shared_ids=n_shared,
        held_out=data.about(),
        shared=shared_file(survey.teacher, split),
        skipped=[
            SkippedData(bad.path, *bad.numbers(), list(map(str, bad.first)))
            for bad in data.bad_data()
        ],
        unreachable=unreachable,
        differing_texts=list(texts_of.items()),
        near_texts=[(messages[n]["text"], learned[other]["text"]) for n, other in near.items()],
        **some,
    )


def repeats(values: np.ndarray) -> np.ndarray:
    """Return the numbers of values that repeat an earlier one, ascending, int64.

    values (np.ndarray): Fingerprints, shape (n,), int64.
    """
    _, first = np.unique(values, return_index=True)
    return np.setdiff1d(np.arange(len(values)), first, assume_unique=True)


def contradictions(inputs: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the numbers of examples whose input also occurs with another label, ascending, int64.

    inputs (np.ndarray): Fingerprints of the inputs, shape (n,), int64.
    pairs (np.ndarray): Fingerprints of the inputs with their labels, shape (n,), int64.
    """
    _, first = np.unique(pairs, return_index=True)
    different, n_pairs = np.unique(inputs[first], return_counts=True)
    return np.flatnonzero(np.isin(inputs, different[n_pairs > 1]))


def _in_train(survey: Survey, train: Sequence[Survey], what: str) -> np.ndarray:
    """Return the numbers of examples that share a fingerprint of this kind with training."""
    others = np.concatenate([each.prints(what) for each in train])
    return np.flatnonzero(np.isin(survey.prints(what), others))


def _group(survey: Survey, count: int, names: List[str]) -> ExampleGroup:
    return ExampleGroup(count, count / max(1, survey.n_examples), names)


def _most(counts: Iterable) -> List:
    return sorted(counts, key=lambda row: (-row[1], row[0]))[:N_NAMED]


def _of_each_label(survey: Survey, labelled: np.ndarray) -> List[int]:
    """Return one example with each label of the first texts with different labels. Texts that
    differ only in case and punctuation count as the same; their examples follow each other."""
    forms = survey.prints(FORMS)
    pairs = 31 * forms + survey.prints("answers")  # Integers overflow by wrapping around.
    numbers = labelled[contradictions(forms[labelled], pairs[labelled])]
    _, first = np.unique(pairs[numbers], return_index=True)
    each = np.sort(numbers[first]).tolist()
    shown = list(dict.fromkeys(forms[each].tolist()))[:N_NAMED]
    found = (number for number in each if forms[number] in shown)
    return sorted(found, key=lambda number: shown.index(forms[number]))


def _messages(surveys: Sequence[Survey], numbers: Iterable[int]) -> Dict[int, Message]:
    """Return examples by their numbers. This reads the data again up to the last of them."""
    wanted = set(numbers)
    episodes = chain.from_iterable(survey.teacher.episodes() for survey in surveys)
    read = islice(chain.from_iterable(episodes), max(wanted, default=-1) + 1)
    return {n: message for n, message in enumerate(read) if n in wanted}
