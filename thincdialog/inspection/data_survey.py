"""Read a split of a task, and count its texts, labels and words."""

from array import array
from collections import Counter
from itertools import combinations, islice
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..agents.conversation import ConversationAgent
from ..data import TextEncoder, Tokenizer
from ..data.tokenizers import WordTokenizer
from ..data.tokenizers.vocabulary_tokenizer import VocabularyTokenizer
from ..data.words import normalise, split_words
from ..messages import SILENCE, Message
from ..protocol import Agent
from ..teachers import Teacher
from ..teachers.held_out import both_sides

LABELS = "labels of a text"
LENGTHS = ("turns", "text words", "label words", "context tokens", "label tokens", LABELS)
PRINTS = ("inputs", "pairs", "texts", "answers", "ids", "conversations")
# For classes: fingerprints of inputs whose current text is without case and punctuation.
FORMS = "forms"
# Fingerprint of a missing label.
UNLABELLED = hash(None)
# Fields that are not inputs, or that are handled separately.
_NOT_INPUTS = {"id", "text", "labels", "eval_labels", "label_candidates", "episode_done", "context"}
# Number of examples whose tokens are counted at once.
_BATCH = 1024
# Number of labels to count by name; if there are more, the rare ones are dropped.
MAX_LABELS = 100_000
# Number of unknown words to count by name; if there are more, the rare ones are dropped.
MAX_WORDS = 100_000
# Number of ids of faulty examples to keep, for each kind of fault.
N_FAULTY = 3
# Number of token rows to cache, about 16 bytes each.
_MAX_CACHED = 1 << 20
_Cut = Callable[[str], List[str]]


class Reading:
    """Describe how the agent of a config reads its data with a tokenizer.

    agent (Agent): The agent, which need not be initialized.
    tokenizer (Optional[Tokenizer]): Its tokenizer, already built.

    history_size (int), use_reply (str), other_fields (bool): As in the agent's ``ReadingOptions``.
    has_classes (bool): Whether labels are names of classes; otherwise they are texts too.
    has_label_sets (bool): Whether a text may have several labels, or none.
    reject_class (str): Label of texts that are out of scope; "" if the agent rejects none.
    encoder (Optional[TextEncoder]): The agent's encoder, without truncation; None if it reads no
        text.
    max_context (int): Maximum number of tokens of a context that the agent keeps; 0 for all.
    max_label (int): Maximum number of tokens of a label that the agent keeps; 0 for all.
    pieces (Optional[Callable]): Splits a text into entries of the vocabulary; None for words.
    words (Callable): Splits a text into words and punctuation marks.
    allowed (Optional[FrozenSet[str]]): The labels in the agent's config; None if it lists none.
    """

    def __init__(self, agent: Agent, tokenizer: Optional[Tokenizer]):
        options, self.has_classes = agent.reading(), agent.has_classes
        self.has_label_sets = agent.has_label_sets
        can_reject = self.has_classes and agent.rejects_below != 0.0
        self.reject_class: str = getattr(agent, "reject_class", "") if can_reject else ""
        self.history_size, self.use_reply = options.history_size, options.use_reply
        self.other_fields = options.other_fields
        self.max_context: int = options.encoder.get("max_context", 0)
        self.max_label: int = 0 if self.has_classes else options.encoder.get("max_label", 0)
        self.allowed = None if options.labels is None else frozenset(options.labels)
        lower = getattr(tokenizer, "lower", True)
        self.words: _Cut = lambda text: split_words(normalise(text, "NFC", lower))
        self.pieces: Optional[_Cut] = None
        if isinstance(tokenizer, WordTokenizer):
            self.words = tokenizer.split
        elif isinstance(tokenizer, VocabularyTokenizer):
            self.pieces = tokenizer.split
        self.encoder: Optional[TextEncoder] = None
        if tokenizer is not None:
            limits = {"max_context": 0, "max_label": 0, "max_cached": _MAX_CACHED}
            self.encoder = TextEncoder(tokenizer, **{**options.encoder, **limits})


class Survey:
    """Count the texts, labels and words of a split. Needs 48 bytes for each example, for classes 8
    more and 8 for each word of a text, and memory for the distinct words and labels.

    teacher (Teacher): Teacher of the split.
    reading (Reading): Describes how the agent reads.
    """

    def __init__(self, teacher: Teacher, reading: Reading):
        self.teacher, self.reading = teacher, reading
        self.known: Optional[Mapping[str, int]] = None
        self.gathered: Counter[str] = Counter()  # Collected words, if no vocabulary is known.
        self.unknown: Counter[str] = Counter()
        self.n_words = self.n_unknown = 0
        self.n_episodes = self.n_examples = 0
        self.n_with_features = 0
        # Numbers of faulty examples by kind, and the ids of the first ones.
        self.faults: Counter[str] = Counter()
        self.faulty: Dict[str, List[str]] = {}
        # Lengths as in ``SplitReport``, with the number of times that each occurs.
        self.lengths: Dict[str, Counter[int]] = {name: Counter() for name in LENGTHS}
        self.labels: Counter[str] = Counter()
        self.outside: Counter[str] = Counter()
        # Pairs of labels (in order) that occur together, to the number of examples with both.
        self.pairs: Counter[Tuple[str, str]] = Counter()
        # Fingerprints (Python's 64-bit hashes) of each example, in order: the agent's input, the
        # input with the labels, the current text, the first label and the id; and of the name of
        # each conversation. The chance that two different values in ten million examples have the
        # same fingerprint is below one in a million.
        self._prints: Dict[str, "array[int]"] = {name: array("q") for name in (*PRINTS, FORMS)}
        # For classes: fingerprints of the distinct words of each text, and their number.
        self._words, self._n_words = array("q"), array("q")
        self._conversation: Optional[str] = None
        self._candidates: Any = None
        self._allowed: FrozenSet[str] = frozenset()
        self._waiting: List[Any] = []
        self._waiting_labels: List[str] = []

    def prints(self, name: str) -> np.ndarray:
        """Return the fingerprints of one kind (see ``PRINTS`` and ``FORMS``), shape (n,), int64."""
        return np.array(self._prints[name], dtype=np.int64)

    def word_sets(self) -> List[FrozenSet[int]]:
        """Return the fingerprints of the distinct lower-case words of each text, without
        punctuation; [] if labels are not classes."""
        words = iter(self._words)
        return [frozenset(islice(words, n)) for n in self._n_words]

    def read(
        self, known: Optional[Mapping[str, int]], progress: Optional[Callable[[int], None]]
    ) -> None:
        """Count the whole split.

        known (Optional[Mapping[str, int]]): The vocabulary; None to collect the words of the split.
        progress (Optional[Callable]): Called with the number of examples read so far.
        RAISES (DataError): If the data cannot be read.
        """
        self.known = known
        listener = ConversationAgent(
            history_size=self.reading.history_size, use_reply=self.reading.use_reply
        )
        for episode in self.teacher.episodes():
            self.n_episodes += 1
            self.lengths["turns"][len(episode)] += 1
            for message in episode:
                self._add(message, listener.observe(message)["turns"])
                listener.self_observe(Message())
                if progress is not None and self.n_examples % _BATCH == 0:
                    progress(self.n_examples)
        self._count_tokens()
        if progress is not None:
            progress(self.n_examples)

    def _add(self, message: Message, turns: Sequence[Any]) -> None:
        """Count one example, whose context the agent reads as these turns."""
        self.n_examples += 1
        text, labels = message.get("text"), message.all_labels
        if self.reading.has_label_sets:
            labels = sorted(set(labels))
        features = message.get("features")
        read: Any = tuple(turns)
        if features is not None:
            self.n_with_features += 1
            read = (read, _print(features))
        elif text is None:
            self._count_fault("without_text", message)
        elif not text.strip():
            self._count_fault("empty_text", message)
        if self.reading.other_fields:
            read = (read, *(_print(message[name]) for name in message if name not in _NOT_INPUTS))
        said = None if text == SILENCE else text
        if said is not None:
            self.lengths["text words"][self._count_words(said)] += 1
        if self.reading.has_classes:
            words = [
                hash(w)
                for w in self.reading.words((said or "").lower())
                if any(map(str.isalnum, w))
            ]
            self._words.extend(set(words))
            self._n_words.append(len(set(words)))
            has_only_text = features is None and not self.reading.other_fields
            form = (*turns[:-1], tuple(words)) if words and has_only_text else read
            self._prints[FORMS].append(hash(form))
        if features is None and self.reading.encoder is not None:
            self._waiting.append(turns)
        if self.reading.has_label_sets:
            self._add_pairs(labels)
        elif not labels:
            self._count_fault("without_label", message)
        if labels:
            self._add_labels(message, labels)
        name = str(message.get("id", self.n_examples))
        read = hash(read)
        found = (read, (read, tuple(labels)), read if said is None else said)
        answer = labels[0] if labels else None
        values = (*found, tuple(labels) if self.reading.has_label_sets else answer, name)
        for place, value in zip(PRINTS, values):
            self._prints[place].append(hash(value))
        conversation = both_sides(name.rpartition("/")[0])
        if conversation != self._conversation or not conversation:
            self._conversation = conversation
            self._prints["conversations"].append(hash(conversation or name))
        if len(self._waiting) >= _BATCH:
            self._count_tokens()

    def _add_labels(self, message: Message, labels: Sequence[str]) -> None:
        reading = self.reading
        if not all(map(str.strip, labels)):
            self._count_fault("empty_label", message)
        if len(self.labels) >= 2 * MAX_LABELS:
            self.labels = Counter(dict(self.labels.most_common(MAX_LABELS)))
        self.labels.update(labels if reading.has_label_sets else labels[:1])
        if not reading.has_classes:
            self.lengths["label words"][self._count_words(labels[0])] += 1
            if reading.encoder is not None:
                self._waiting_labels.append(labels[0])
        candidates = message.get("label_candidates")
        if candidates is not None and candidates is not self._candidates:
            self._candidates, self._allowed = candidates, frozenset(candidates)
        for label in labels:
            missing = candidates is not None and label not in self._allowed
            if missing or (reading.allowed is not None and label not in reading.allowed):
                self._count_fault("outside", message)
                if len(self.outside) < MAX_LABELS:
                    self.outside[label] += 1
                break

    def _add_pairs(self, labels: Sequence[str]) -> None:
        self.lengths[LABELS][len(labels)] += 1
        if len(self.pairs) >= 2 * MAX_LABELS:
            self.pairs = Counter(dict(self.pairs.most_common(MAX_LABELS)))
        self.pairs.update(combinations(labels, 2))

    def _count_fault(self, kind: str, message: Message) -> None:
        self.faults[kind] += 1
        if self.faults[kind] <= N_FAULTY:
            self.faulty.setdefault(kind, []).append(str(message.get("id", self.n_examples - 1)))

    def _count_words(self, text: str) -> int:
        words = self.reading.words(text)
        pieces = words if self.reading.pieces is None else self.reading.pieces(text)
        self.n_words += len(pieces)
        known = self.known
        if known is None:
            self.gathered.update(pieces)
            return len(words)
        unknown = [piece for piece in pieces if piece not in known]
        if unknown:
            self.n_unknown += len(unknown)
            self.unknown.update(unknown)
            if len(self.unknown) >= 2 * MAX_WORDS:
                self.unknown = Counter(dict(self.unknown.most_common(MAX_WORDS)))
        return len(words)

    def _count_tokens(self) -> None:
        encoder, lengths = self.reading.encoder, self.lengths
        if encoder is None:
            return
        if self._waiting:
            lengths["context tokens"].update(encoder.context_lengths(self._waiting).tolist())
        if self._waiting_labels:
            lengths["label tokens"].update(encoder.label_lengths(self._waiting_labels).tolist())
        self._waiting, self._waiting_labels = [], []


def _print(value: Any) -> Any:
    """Return a hashable form of a value. Equal values have equal forms."""
    return value.tobytes() if hasattr(value, "tobytes") else repr(value)
