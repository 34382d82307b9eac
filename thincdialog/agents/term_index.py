"""An inverted index in NumPy, which finds the texts that share important terms with a query."""

from typing import Mapping, NamedTuple, Sequence, Tuple

import numpy as np


class TermIndex(NamedTuple):
    """Hold the weights of terms in documents, sorted by term.

    terms (np.ndarray): The terms that occur, ascending, shape (n_terms,), int32.
    starts (np.ndarray): Index of each term's first posting, then the number of postings, shape
        (n_terms + 1,), int64.
    documents (np.ndarray): Document of each posting, shape (n_postings,), int32.
    weights (np.ndarray): Weight of each posting's term in its document, shape (n_postings,),
        float32.
    n_documents (int): Number of documents.
    """

    terms: np.ndarray
    starts: np.ndarray
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
        ascending = terms[order]
        first = np.flatnonzero(np.diff(ascending, prepend=-1))
        starts = np.append(first, len(ascending))
        return cls(ascending[first], starts, documents[order], weights[order], n_documents)

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
        at = np.searchsorted(self.terms, terms)
        for term, place, weight in zip(terms.tolist(), at.tolist(), weights.tolist()):
            if place < len(self.terms) and self.terms[place] == term:
                postings = slice(self.starts[place], self.starts[place + 1])
                # A term has one posting per document, so no index occurs twice.
                scores[self.documents[postings]] += weight * self.weights[postings]
        return scores

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "TermIndex":
        """Build an index from arrays, which are the saved values of ``_asdict``.

        RAISES (KeyError, ValueError): If an array is missing or does not fit.
        """
        *own, n_documents = (arrays[name] for name in cls._fields)
        index = cls._make([*own, int(n_documents)])
        parts, (n_postings, documents) = index[:4], (len(index.documents), index.documents)
        if any(part.ndim != 1 for part in parts) or not np.isfinite(index.weights).all():
            raise ValueError("an array is not a row of finite numbers")
        if len(index.starts) != len(index.terms) + 1 or index.starts[-1] != n_postings:
            raise ValueError("the starts do not fit the terms")
        if index.starts[0] != 0 or (np.diff(index.starts) < 0).any():
            raise ValueError("the starts are not in order")
        if n_postings and not 0 <= documents.min() <= documents.max() < index.n_documents:
            raise ValueError("a posting has no document")
        if len(index.weights) != n_postings:
            raise ValueError("the weights do not fit the documents")
        return index


def count_terms(terms: np.ndarray, owners: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count how often each owner has each term.

    terms, owners (np.ndarray): Term and owner of each token, shape (n_tokens,).
    RETURNS (Tuple): Owner, term and count (int64) of each pair, sorted by owner, then term.
    """
    keys, counts = np.unique(owners.astype(np.int64) << 32 | terms, return_counts=True)
    return keys >> 32, keys & 0xFFFFFFFF, counts
