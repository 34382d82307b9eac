"""What ``debug data`` says of the data of a config."""

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from ..evaluation.unreachable import Unreachable
from .batching_costs import BatchingCosts
from .data_lengths import LengthSurvey

# A label or word, and how often it occurs.
Count = Tuple[str, int]


@dataclass
class ExampleGroup:
    """Examples of one kind.

    count (int): How many.
    share (float): Of all examples of the split, 0.0 to 1.0.
    ids (List[str]): Of the first ones.
    """

    count: int = 0
    share: float = 0.0
    ids: List[str] = field(default_factory=list)


@dataclass
class SkippedData:
    """What is left out of a file.

    path (str): The file.
    n_read, n_skipped (int): Its conversations, or what `unit` says: those that can be read, and
        those that cannot.
    n_problems (int): What is wrong in the latter.
    n_without (int): Of the former, those in which `label_speaker` has no turn.
    unit (str): What is counted.
    note (str): What is odd about the whole file; "" if nothing.
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
    """What stands in a split of a task; counts are of examples if nothing else is said.

    lengths (Dict[str, LengthSurvey]): "turns" of an episode; "text words", "label words"; and,
        as the agent reads them, before it cuts: "context tokens", "label tokens"; "labels of a
        text" where it may have several.
    truncated (Dict[str, float]): Shares of "contexts" and "labels" that the agent cuts.
    n_words, n_unknown (int): Words of texts (labels too), and those not in the vocabulary.
    unknown_words (List[Count]): The most frequent ones.
    n_labels (int): Different first labels.
    frequent_labels, rare_labels (List[Count]): The most and the least frequent, in order.
    pairs (List[Tuple[str, str, int]]): Labels that most often occur together, and in how many
        examples.
    n_rare_classes (int): Classes with fewer examples than ``Limits.min_of_class``.
    without_text, empty_text (ExampleGroup): With neither text nor features; with white space only.
    without_label, empty_label (ExampleGroup): Likewise.
    null_labels (List[Count]): Labels that may be missing values, such as "NaN".
    new_labels (ExampleGroup): Whose first label is not in the training data; labels for ids.
    outside (ExampleGroup): With a label that is not among the candidates; likewise.
    outside_examples (List[str]): Ids of the first of these.
    unreachable (Unreachable): Labels of an evaluation that are among nobody's candidates.
    duplicates (ExampleGroup): Read and answered before, in this split.
    contradictions (ExampleGroup): Read elsewhere in this split with another answer.
    in_train (ExampleGroup): Read and answered in training, too.
    input_in_train, text_in_train (ExampleGroup): What is read, and its last text alone.
    near_train (ExampleGroup): Of classes, whose text is not in training, but nearly (see
        ``near_duplicates``).
    near_texts (List[Tuple[str, str]]): Texts of the first of these, each with the one in training.
    differing_texts (List[Tuple[str, List[str]]]): Of classes, the first texts that have different
        labels, and these.
    repeated_ids (ExampleGroup): Whose id occurred before.
    shared_ids (int): Conversations that have their id from one that ended before.
    held_out (str): Which part of its files the split is; "" if all of them.
    shared (str): What its file is, too (see ``shared_file``); "" if nothing.
    skipped (List[SkippedData]): Of each file, what is left out.
    store (str): What ``[loader] store`` has of it; "" if the config names none.
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
class Limits:
    """From where on ``debug data`` warns; shares are 0.0 to 1.0.

    min_train (int): Training examples of a task.
    min_of_class (int): Training examples of a class.
    max_label (float): Share of the most frequent training label.
    max_duplicates (float): Share of training examples that were there before.
    max_contradictions (float): Of training examples with other classes for the same input.
    max_overlap (float): Share of dev or test examples that are in the training data.
    max_unknown (float): Share of unknown words.
    max_truncated (float): Share of contexts, or labels, that are cut.
    max_unreachable (float): Share of dev or test labels that are among nobody's candidates.
    """

    min_train: int = 100
    min_of_class: int = 10
    max_label: float = 0.9
    max_duplicates: float = 0.1
    max_contradictions: float = 0.01
    max_overlap: float = 0.01
    max_unknown: float = 0.05
    max_truncated: float = 0.1
    max_unreachable: float = 0.5


@dataclass(frozen=True)
class DataWarning:
    """Something that may be wrong.

    check (str): Name of the check.
    task, split (str): Where.
    text (str): What was found.
    hint (str): What can be done.
    """

    check: str
    task: str
    split: str
    text: str
    hint: str


@dataclass
class DataReport:
    """What ``debug_data`` found.

    splits (List[SplitReport]): One for each task and split.
    has_classes (bool): Whether labels are classes; else they are texts.
    has_label_sets (bool): Whether a text may have several labels, or none.
    vocabulary (int): Different words that the training data has, or the tokenizer keeps.
    limits (Limits): What the warnings go by.
    warnings (List[DataWarning]): In the order of the checks.
    passed (List[str]): Names of the checks that found nothing.
    regime (str): How large the training data is, and what to expect of it; "" for replies.
    costs (Optional[BatchingCosts]): Of reading, and of padding; None where training is not
        looked at.
    """

    splits: List[SplitReport]
    has_classes: bool
    has_label_sets: bool
    vocabulary: int
    limits: Limits
    warnings: List[DataWarning] = field(default_factory=list)
    passed: List[str] = field(default_factory=list)
    costs: Optional[BatchingCosts] = None
    regime: str = ""

    def as_dict(self) -> Dict[str, Any]:
        """As JSON values."""
        return asdict(self)
