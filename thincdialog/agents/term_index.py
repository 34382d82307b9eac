"""An inverted index in plain NumPy: which texts share weighty terms with a query."""

from typing import Dict, Tuple

import numpy as np


class TermIndex:
    """Weights of terms in documents, by term.

    terms (np.ndarray): The terms that occur, ascending, shape (n_terms,), int32.
    starts (np.ndarray): First posting of each, and the end, shape (n_terms + 1,), int64.
    documents (np.ndarray): Document of each posting, shape (n_postings,), int32.
    weights (np.ndarray): Weight of the term in it, shape (n_postings,), float32.
    n_documents (int): Number of documents.
    """

    def __init__(
        self,
        terms: np.ndarray,
        starts: np.ndarray,
        documents: np.ndarray,
        weights: np.ndarray,
        n_documents: int,
    ):
        self.terms = terms
        self.starts = starts
        self.documents = documents
        self.weights = weights
        self.n_documents = n_documents

    @classmethod
    def build(
        cls, documents: np.ndarray, terms: np.ndarray, weights: np.ndarray, n_documents: int
    ) -> "TermIndex":
        """Sort postings by term.

        documents, terms, weights (np.ndarray): Of each posting, in order of documents.
        """
        order = terms.argsort(kind="stable")
        ascending = terms[order]
        first = np.flatnonzero(np.diff(ascending, prepend=-1))
        starts = np.append(first, len(ascending))
        return cls(ascending[first], starts, documents[order], weights[order], n_documents)

    def best(self, terms: np.ndarray, weights: np.ndarray) -> int:
        """The document with the highest sum of products of weights; of equals the
        first, and -1 if no document has any of the terms.

        terms, weights (np.ndarray): Of the query, each term once; shape (n,).
        """
        at = np.searchsorted(self.terms, terms)
        at[at == len(self.terms)] = 0
        known = self.terms[at] == terms if len(self.terms) else np.zeros(len(at), dtype=bool)
        if not known.any():
            return -1
        scores = np.zeros(self.n_documents, dtype=np.float32)
        for row, weight in zip(at[known].tolist(), weights[known].tolist()):
            postings = slice(self.starts[row], self.starts[row + 1])
            # A term has one posting a document, so no index comes twice.
            scores[self.documents[postings]] += weight * self.weights[postings]
        return int(scores.argmax())

    def arrays(self) -> Dict[str, np.ndarray]:
        """What ``from_arrays`` takes."""
        return {
            "terms": self.terms,
            "starts": self.starts,
            "documents": self.documents,
            "weights": self.weights,
            "n_documents": np.array(self.n_documents),
        }

    @classmethod
    def from_arrays(cls, arrays: Dict[str, np.ndarray]) -> "TermIndex":
        """RAISES (KeyError, ValueError): If an array is missing or does not fit."""
        index = cls(
            arrays["terms"],
            arrays["starts"],
            arrays["documents"],
            arrays["weights"],
            int(arrays["n_documents"]),
        )
        n_postings = len(index.documents)
        if len(index.starts) != len(index.terms) + 1 or index.starts[-1] != n_postings:
            raise ValueError("the starts do not fit the terms")
        if (
            n_postings
            and not 0 <= index.documents.min() <= index.documents.max() < index.n_documents
        ):
            raise ValueError("a posting has no document")
        if len(index.weights) != n_postings:
            raise ValueError("the weights do not fit the documents")
        return index


def count_terms(terms: np.ndarray, owners: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How often each owner has each term.

    terms, owners (np.ndarray): Of each token, shape (n_tokens,).
    RETURNS (Tuple): Owner, term and count (int64) of each pair, by owner, then term.
    """
    keys, counts = np.unique(owners.astype(np.int64) << 32 | terms, return_counts=True)
    return keys >> 32, keys & 0xFFFFFFFF, counts
