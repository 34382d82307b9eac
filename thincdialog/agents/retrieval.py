"""An agent that answers by word overlap with a candidate, or with the context of a known reply."""

from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Literal, Optional, Sequence, Set, Tuple

import numpy as np

from ..data import TextEncoder, Tokenizer
from ..data.text_encoder import TokenRows
from ..data.tokenizers import HashNgramTokenizer
from ..examples.batch import Batch
from ..files.array_file import read_arrays, reading_arrays
from ..files.json_file import number_in, texts_in, whole_number_in
from ..messages import PARTNER, SILENCE, Message, Turn, column
from ..protocol import Observations
from ..registry import registry
from ..teachers import Teacher
from .conversation import ConversationAgent
from .ranking import best_places
from .repeats import kept_setting, shall_block
from .single_pass import surveyed
from .term_index import TermIndex, count_terms

_ROWS = 1 << 22  # Rows for hashed terms: far more than a language has words.
_CHUNK = 2048  # Number of texts to count at a time.
_ARRAYS = "retrieval.npz"


@registry.agents("thincdialog.Retrieval.v1")
class RetrievalAgent(ConversationAgent):
    """Ranks the candidates by the similarity of their words to those of the context. Without
    candidates, answers with the reply of the training example that has the most similar context.

    method (str): "tfidf" (cosine of term frequency times inverse document frequency) or "bm25"
        (Robertson and Zaragoza 2009, https://doi.org/10.1561/1500000019).
    history_size (int): Number of turns of the context, including the current one; -1 for all.
    ngrams (int): Length in words of the longest n-grams that are terms, 1 or more.
    k1 (float): For bm25: how slowly the weight of a repeated term saturates, 0.0 or more.
    b (float): For bm25: strength of the penalty for long texts, 0.0 to 1.0.
    block_repeats (Optional[bool]): Whether replies that repeat the message, an earlier turn of the
        conversation or a line of one are given only if there is no other reply, with any
        history_size; if None, only if fewer than one in fifty training labels are such repeats.
    RAISES (ValueError): If a value is out of range.
    """

    id = "retrieval"
    # An example whose label is not a candidate counts as wrong, but is not an error.
    ignore_bad_candidates = True

    def __init__(
        self,
        *,
        method: Literal["tfidf", "bm25"] = "tfidf",
        history_size: int = 3,
        ngrams: int = 1,
        k1: float = 1.2,
        b: float = 0.75,
        block_repeats: Optional[bool] = None,
    ):
        super().__init__(history_size=history_size)
        if method not in ("tfidf", "bm25"):
            raise ValueError(f"method = '{method}', expected 'tfidf' or 'bm25'")
        if k1 < 0 or not 0 <= b <= 1:
            raise ValueError(f"k1 = {k1}, b = {b}, expected k1 of 0 or more and b from 0 to 1")
        self.method = method
        self.k1 = k1
        self.b = b
        self.block_repeats = block_repeats
        self.blocks_repeats = bool(block_repeats)
        self.text = TextEncoder(
            HashNgramTokenizer(n_rows=_ROWS, ngrams=ngrams),
            history_size=history_size,
            max_context=0,
            max_label=0,
            delimiter=False,
        )
        self.n_texts = 0
        self.mean_length = 1.0
        self.frequencies = np.zeros(self.text.tokenizer.n_ids, dtype=np.int32)
        self.replies: List[str] = []
        self.reply_of = np.zeros(0, dtype=np.int32)
        empty = np.zeros(0, dtype=np.int32)
        self.index = TermIndex.build(empty, empty, empty.astype(np.float32), 0)
        # A list, and the index of each text in it.
        self._numbered: Tuple[List[str], Dict[str, int]] = ([], {})

    # --- learning -------------------------------------------------------------------

    def initialize(self, train: Teacher, *, seed: int = 0, **_: Any) -> None:
        contexts: List[Tuple[np.ndarray, ...]] = [(np.zeros(0, dtype=np.int32),) * 3]
        numbers: Dict[str, int] = {}
        reply_of: List[int] = []

        def read(train: Teacher) -> None:
            for examples in _chunks(train.examples()):
                answered = [example for example in examples if example.all_labels]
                turns = [
                    [*example.get("context", ()), (PARTNER, example.get("text") or "")]
                    for example in answered
                ]
                documents, terms, counts = _counts(self.text.contexts(_without_silence(turns)))
                documents += len(reply_of)
                contexts.append(tuple(each.astype(np.int32) for each in (documents, terms, counts)))
                for example in answered:
                    reply_of.append(numbers.setdefault(example.all_labels[0], len(numbers)))

        surveyed(read, train, self._count_texts)()
        self.replies = list(numbers)
        self.reply_of = np.array(reply_of, dtype=np.int32)
        documents, terms, counts = (np.concatenate(parts) for parts in zip(*contexts))
        weights = self._document_weights(documents, terms, counts, len(reply_of))
        self.index = TermIndex.build(documents, terms, weights, len(reply_of))
        self.blocks_repeats = shall_block(self.block_repeats, train)

    def _count_texts(self, texts: Iterable[str]) -> None:
        """Count the texts that each term occurs in, and the mean length of texts."""
        n_tokens = self.n_texts = 0
        self.frequencies[:] = 0
        for chunk in _chunks(texts):
            encoded = self.text.labels(chunk)
            np.add.at(self.frequencies, _counts(encoded)[1], 1)
            self.n_texts += len(chunk)
            n_tokens += len(encoded[0])
        self.mean_length = max(1.0, n_tokens / max(1, self.n_texts))

    # --- weights --------------------------------------------------------------------

    def _rarity(self, terms: np.ndarray) -> np.ndarray:
        """Return the inverse document frequency of terms, above 0."""
        n, found = self.n_texts, self.frequencies[terms].astype(np.float64)
        if self.method == "bm25":
            return np.log1p((n - found + 0.5) / (found + 0.5))
        return np.log((1 + n) / (1 + found)) + 1

    def _document_weights(
        self, documents: np.ndarray, terms: np.ndarray, counts: np.ndarray, n_documents: int
    ) -> np.ndarray:
        """Return the weight of each term in its document; shape (n_pairs,), float32."""
        if self.method == "tfidf":
            weights = counts * self._rarity(terms)
            return _unit(weights, documents, n_documents)
        lengths = np.bincount(documents, weights=counts, minlength=n_documents)
        relative = 1 - self.b + self.b * lengths / self.mean_length
        saturated = counts * (self.k1 + 1) / (counts + self.k1 * relative[documents])
        return saturated.astype(np.float32)

    # --- answering ------------------------------------------------------------------

    def batch_act(self, observations: Observations) -> Sequence[Message]:
        batch = Batch.of(observations)
        said = batch.said() if self.blocks_repeats else [set[str]()] * len(batch)
        turns = _without_silence(batch.turns(self.history_size))
        queries, terms, counts = _counts(self.text.contexts(turns))
        weights = counts * self._rarity(terms)
        if self.method == "tfidf":
            weights = _unit(weights, queries, len(turns))
        bounds = np.searchsorted(queries, np.arange(1, len(turns)))
        candidates = column(observations, "label_candidates")
        split = (np.split(each, bounds) for each in (terms, weights.astype(np.float32)))
        rows = zip(candidates, said, *split)
        texts, index = self._index_of(candidates)
        rankings: List[Sequence[str]] = []
        for among, before, own_terms, own_weights in rows:
            if among is None:
                repeats = self._documents_with(before)
                best = self.index.best(own_terms, own_weights, repeats)
                if best < 0:  # No context shares a term: use the first reply that is not a repeat.
                    best = int((repeats == np.arange(len(repeats))).sum())
                rankings.append([self.replies[self.reply_of[best]]] if self.replies else [])
                continue
            numbers = [texts[text] for text in among]
            scores = index.scores(own_terms, own_weights, "float64")[numbers]
            is_repeat = np.array([text in before for text in among], dtype=bool)
            order = best_places(scores, self.n_ranked, is_repeat)
            rankings.append([among[place] for place in order.tolist()])
        return self.ranked_replies(rankings)

    def _index_of(
        self, candidates: Sequence[Optional[Sequence[str]]]
    ) -> Tuple[Dict[str, int], TermIndex]:
        """Build an index of the distinct candidates of some observations, and number them."""
        texts: Dict[str, int] = {}
        for text in (text for among in candidates for text in among or ()):
            texts.setdefault(text, len(texts))
        documents, terms, counts = _counts(self.text.labels(list(texts)))
        weights = self._document_weights(documents, terms, counts, len(texts))
        return texts, TermIndex.build(documents, terms, weights, len(texts))

    def _documents_with(self, said: Set[str]) -> Any:
        """Return the documents whose reply is one of these texts, ascending; none if all documents
        are."""
        numbered, places = self._numbered
        if numbered is not self.replies:
            places = {text: number for number, text in enumerate(self.replies)}
            self._numbered = self.replies, places
        numbers = [places[text] for text in said if text in places]
        if not numbers or len(numbers) == len(self.replies):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(np.isin(self.reply_of, numbers))

    # --- saving ---------------------------------------------------------------------

    def state(self) -> Dict[str, Any]:
        return {
            "n_texts": self.n_texts,
            "mean_length": self.mean_length,
            "replies": self.replies,
            "blocks_repeats": self.blocks_repeats,
        }

    def set_state(self, state: Dict[str, Any]) -> None:
        self.n_texts = whole_number_in(state, "n_texts")
        self.mean_length = number_in(state, "mean_length", 1)
        self.replies = texts_in(state, "replies")
        self.blocks_repeats = kept_setting(self.block_repeats, state)

    def to_disk(self, folder: Path) -> None:
        super().to_disk(folder)
        known = np.flatnonzero(self.frequencies)
        arrays: Dict[str, Any] = {
            "known": known.astype(np.int32),
            "frequencies": self.frequencies[known],
            "reply_of": self.reply_of,
            **self.index.to_arrays(),
        }
        np.savez(folder / _ARRAYS, **arrays)

    def from_disk(self, folder: Path, *, tokenizer: Optional[Tokenizer] = None) -> None:
        super().from_disk(folder, tokenizer=tokenizer)
        path = folder / _ARRAYS
        arrays = read_arrays(path)
        with reading_arrays(path):
            index = TermIndex.from_arrays(arrays)
            frequencies = np.zeros_like(self.frequencies)
            known = arrays["known"]
            if len(known) and known.min() < 0:
                raise ValueError("a term has a negative number")
            frequencies[known] = arrays["frequencies"]
            reply_of = arrays["reply_of"]
            if len(reply_of) != index.n_documents:
                raise ValueError("the replies do not fit the contexts")
            if len(reply_of) and not 0 <= reply_of.min() <= reply_of.max() < len(self.replies):
                raise ValueError("it does not fit the replies in agent.json")
        self.index, self.frequencies, self.reply_of = index, frequencies, reply_of


def _counts(encoded: TokenRows) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return document, term and count of each pair that occurs."""
    rows, lengths = encoded
    return count_terms(rows[:, 0], np.arange(len(lengths)).repeat(lengths))


def _unit(weights: np.ndarray, owners: np.ndarray, n_owners: int) -> np.ndarray:
    """Divide weights by the Euclidean norm of all weights of the same owner."""
    squares = np.bincount(owners, weights=weights * weights, minlength=n_owners)
    return (weights / np.sqrt(squares)[owners]).astype(np.float32)


def _without_silence(conversations: Sequence[Sequence[Turn]]) -> List[List[Turn]]:
    return [[turn for turn in turns if turn[1] != SILENCE] for turns in conversations]


def _chunks(items: Iterable[Any]) -> Iterator[List[Any]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk
