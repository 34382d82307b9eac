"""The report of ``debug data`` on the data of a config."""

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Tuple

from ..evaluation.unreachable import Unreachable
from .data_lengths import LengthSurvey
from .paddings import Padding

# A label or word, and its number of occurrences.
Count = Tuple[str, int]


@dataclass
class ExampleGroup:
    """Describe the examples of one kind in a split.

    count (int): Number of these examples.
    share (float): Fraction of all examples of the split, 0.0 to 1.0.
    ids (List[str]): Ids of the first of these examples.
    """

    count: int = 0
    share: float = 0.0
    ids: List[str] = field(default_factory=list)


@dataclass
class SkippedData:
    """Count the rows of a file that are left out.

    path (str): Path of the file.
    n_read, n_skipped (int): Number of conversations (or of another `unit`) that can be read, and
        that cannot.
    n_problems (int): Number of problems in conversations that cannot be read.
    n_without (int): Number of readable conversations in which `label_speaker` has no turn.
    unit (str): Unit of these numbers, in the plural.
    note (str): A suspicious property of the whole file; "" if there is none.
    first (List[str]): The first problems, with their lines.
    """

    path: str
    n_read: int
    n_skipped: int
    n_problems: int
    n_without: int
    unit: str
    note: str
    first: List[str]


@dataclass
class SplitReport:
    """Describe a split of a task. Counts are numbers of examples unless stated otherwise.

    lengths (Dict[str, LengthSurvey]): Lengths by name: "turns" of an episode; "text words" and
        "label words"; "context tokens" and "label tokens" as the agent reads them, before
        truncation; and "labels of a text" if a text may have several.
    truncated (Dict[str, float]): Fractions of "contexts" and "labels" that the agent truncates.
    n_words, n_unknown (int): Number of words in texts and labels, and of those not in the
        vocabulary.
    unknown_words (List[Count]): The most frequent unknown words.
    n_labels (int): Number of distinct first labels.
    frequent_labels, rare_labels (List[Count]): The most and the least frequent labels, in order.
    pairs (List[Tuple[str, str, int]]): Pairs of labels that most often occur together, each with
        its number of examples.
    n_rare_classes (int): Number of classes with fewer examples than ``MIN_OF_CLASS``.
    without_text, empty_text (ExampleGroup): Examples with neither text nor features, and examples
        whose text is only white space.
    without_label, empty_label (ExampleGroup): Examples without a label, and examples with a label
        that is only white space.
    null_labels (List[Count]): Labels that may be missing values, such as "NaN".
    new_labels (ExampleGroup): Examples whose first label is not in the training data; `ids` are the
        labels.
    outside (ExampleGroup): Examples with a label that is not among the candidates; `ids` are the
        labels.
    outside_examples (List[str]): Ids of the first examples in ``outside``.
    unreachable (Unreachable): Labels of an evaluation that are in no candidate list.
    duplicates (ExampleGroup): Examples whose input and labels occurred before in this split.
    contradictions (ExampleGroup): Examples whose input also occurs in this split with another
        label.
    in_train (ExampleGroup): Examples whose input and labels are also in the training data.
    input_in_train, text_in_train (ExampleGroup): Examples whose input, or whose last text, is also
        in the training data.
    near_train (ExampleGroup): For classes, examples whose text is nearly the same as a text in the
        training data, but not equal (see ``near_duplicates``).
    near_texts (List[Tuple[str, str]]): For classes, the texts that are a text in the training data,
        exactly or nearly, each with the text in the training data.
    differing_texts (List[Tuple[str, List[str]]]): For classes, the first texts with different
        labels, and these labels. Texts that differ only in case and punctuation follow each other.
    repeated_ids (ExampleGroup): Examples whose id occurred before.
    shared_ids (int): Number of conversations with the id of an earlier conversation.
    held_out (str): The part of its files that the split consists of; "" if all of them.
    shared (str): A line if an earlier split has the same file (see ``shared_file``); else "".
    skipped (List[SkippedData]): The rows that are left out, one entry for each file.
    store (str): State of the split in ``[loader] store``; "" if the config names none.
    """

    task: str
    split: str
    n_episodes: int
    n_conversations: int
    n_examples: int
    lengths: Dict[str, LengthSurvey]
    truncated: Dict[str, float]
    n_words: int
    n_unknown: int
    unknown_words: List[Count]
    n_labels: int
    frequent_labels: List[Count]
    rare_labels: List[Count]
    null_labels: List[Count]
    pairs: List[Tuple[str, str, int]]
    n_rare_classes: int
    n_with_features: int
    without_text: ExampleGroup
    empty_text: ExampleGroup
    without_label: ExampleGroup
    empty_label: ExampleGroup
    new_labels: ExampleGroup
    outside: ExampleGroup
    outside_examples: List[str]
    unreachable: Unreachable
    duplicates: ExampleGroup
    contradictions: ExampleGroup
    in_train: ExampleGroup
    input_in_train: ExampleGroup
    text_in_train: ExampleGroup
    near_train: ExampleGroup
    near_texts: List[Tuple[str, str]]
    differing_texts: List[Tuple[str, List[str]]]
    repeated_ids: ExampleGroup
    shared_ids: int
    held_out: str = ""
    shared: str = ""
    skipped: List[SkippedData] = field(default_factory=list)
    store: str = field(default="", init=False)


@dataclass(frozen=True)
class DataWarning:
    """Describe a likely problem.

    check (str): Name of the check.
    task, split (str): Task and split with the problem.
    text (str): The finding.
    hint (str): Advice for the user.
    """

    check: str
    task: str
    split: str
    text: str
    hint: str


@dataclass
class DataReport:
    """Hold the result of ``debug_data()``.

    splits (List[SplitReport]): One report for each task and split.
    has_classes (bool): Whether labels are classes; otherwise they are texts.
    has_label_sets (bool): Whether a text may have several labels, or none.
    vocabulary (int): Number of distinct words in the training data, or in the tokenizer's
        vocabulary.
    warnings (List[DataWarning]): The warnings, in the order of the checks.
    passed (List[str]): Names of the checks without warnings.
    regime (str): Size of the training data and the accuracy to expect; "" for replies.
    paddings (List[Padding]): Padding of several batchers, the config's own first; [] if the world
        has no batcher, if the agent reads no text, or without the training data.
    pads (bool): Whether the model spends time on padding; most models of this library do not.
    """

    splits: List[SplitReport]
    has_classes: bool
    has_label_sets: bool
    vocabulary: int
    warnings: List[DataWarning] = field(default_factory=list)
    passed: List[str] = field(default_factory=list)
    regime: str = ""
    paddings: List[Padding] = field(default_factory=list)
    pads: bool = False

    def as_dict(self) -> Dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)
