"""An inverted index in NumPy, which finds the texts that share important terms with a query."""

from typing import Dict, Mapping, NamedTuple, Sequence, Tuple

import numpy as np


class TermIndex(NamedTuple):
    """Hold the weights of terms in documents, sorted by term.

    terms (np.ndarray): Term of each posting, ascending, shape (n_postings,), int32.
    documents (np.ndarray): Document of each posting, shape (n_postings,), int32.
    weights (np.ndarray): Weight of each posting's term in its document, shape (n_postings,),
        float32.
    n_documents (int): Number of documents.
    """

    terms: np.ndarray
    documents: np.ndarray
    weights: np.ndarray
    n_documents: int

    @classmethod
    def build(
        cls, documents: np.ndarray, terms: np.ndarray, weights: np.ndarray, n_documents: int
    ) -> "TermIndex":
        """Build an index from postings.

        documents, terms, weights (np.ndarray): Document, term and weight of each posting, sorted by
            document.
        n_documents (int): Number of documents.
        """
        order = terms.argsort(kind="stable")
        return cls(terms[order], documents[order], weights[order], n_documents)

    def best(self, terms: np.ndarray, weights: np.ndarray, without: Sequence[int] = ()) -> int:
        """Return the document with the highest sum of products of weights: the first of equals, or
        -1 if no document has any of the terms.

        terms, weights (np.ndarray): Distinct terms of the query and their weights; shape (n,).
        without (Sequence[int]): Documents to leave out; not all.
        """
        scores = self.scores(terms, weights)
        if not scores.any():
            return -1
        if len(without):
            scores[without] = -1.0  # Other documents have scores of 0 or more.
        return int(scores.argmax())

    def scores(self, terms: np.ndarray, weights: np.ndarray, dtype: str = "float32") -> np.ndarray:
        """Return the sum of products of weights for each document, shape (n_documents,).

        terms, weights: As for ``best``.
        dtype (str): Type of the sums.
        """
        scores = np.zeros(self.n_documents, dtype=dtype)
        ends = (np.searchsorted(self.terms, terms, side).tolist() for side in ("left", "right"))
        for first, end, weight in zip(*ends, weights.tolist()):
            # A term has one posting per document, so no index occurs twice.
            scores[self.documents[first:end]] += weight * self.weights[first:end]
        return scores

    def to_arrays(self) -> Dict[str, np.ndarray]:
        """Return arrays to save, with each term once and the place of its first posting."""
        terms, starts = np.unique(self.terms, return_index=True)
        starts = np.append(starts, len(self.terms))
        return {**self._asdict(), "terms": terms, "starts": starts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "TermIndex":
        """Build an index from the arrays of ``to_arrays``.

        RAISES (KeyError, ValueError): If an array is missing or does not fit.
        """
        documents, weights, n = (arrays[name] for name in ("documents", "weights", "n_documents"))
        counts = np.diff(arrays["starts"])
        if not documents.shape == weights.shape == (counts.sum(),):
            raise ValueError("the starts, documents and weights do not fit each other")
        terms = np.repeat(arrays["terms"], counts)
        if not np.isfinite(weights).all():
            raise ValueError("a weight is not finite")
        if len(documents) and not 0 <= documents.min() <= documents.max() < n:
            raise ValueError("a posting has no document")
        return cls.build(documents, terms, weights, int(n))


def count_terms(terms: np.ndarray, owners: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count how often each owner has each term.

    terms, owners (np.ndarray): Term and owner of each token, shape (n_tokens,).
    RETURNS (Tuple): Owner, term and count (int64) of each pair, sorted by owner, then term.
    """
    keys, counts = np.unique(owners.astype(np.int64) << 32 | terms, return_counts=True)
    return keys >> 32, keys & 0xFFFFFFFF, counts
