"""Normalised rows that run compiled."""

from typing import Any, Tuple

import numpy

from .compiled import load_kernels


class CompiledNorms:
    """Part of ``DialogFastOps``: what the layers ask for that scale rows. All arrays are
    float32, of shape (n, width) where nothing else stands."""

    def l2_normalise(self, X: Any, shortest: float) -> Tuple[Any, Any]:
        """Rows of length 1.

        shortest (float): Rows shorter than this stay shorter than 1.
        RETURNS (Tuple[Floats2d, Floats1d]): The rows, and how long they were.
        """
        X = _plain(X)
        Y, lengths = numpy.empty_like(X), numpy.empty((X.shape[0],), dtype="f")
        load_kernels("norms").l2_normalise(X, shortest, Y, lengths)
        return Y, lengths

    def backprop_l2_normalise(self, dY: Any, Y: Any, lengths: Any, shortest: float) -> Any:
        """The gradient; Y and lengths as ``l2_normalise`` gave them."""
        dX = numpy.empty_like(Y)
        load_kernels("norms").backprop_l2_normalise(_plain(dY), Y, lengths, shortest, dX)
        return dX

    def layer_norm(self, X: Any, G: Any, b: Any) -> Tuple[Any, Any, Any]:
        """Rows of mean 0 and variance 1, times G (width,), plus b (width,).

        RETURNS (Tuple[Floats2d, Floats2d, Floats1d]): The rows, the rows without G and b,
            and what they were multiplied with.
        """
        X = _plain(X)
        Y, hat, scales = numpy.empty_like(X), numpy.empty_like(X), numpy.empty(X.shape[:1], "f")
        load_kernels("norms").layer_norm(X, _plain(G), _plain(b), Y, hat, scales)
        return Y, hat, scales

    def backprop_layer_norm(self, dY: Any, G: Any, hat: Any, scales: Any) -> Tuple[Any, Any, Any]:
        """The gradients of X, G and b; hat and scales as ``layer_norm`` gave them."""
        dX, dG, db = numpy.empty_like(hat), numpy.zeros_like(G), numpy.zeros_like(G)
        load_kernels("norms").backprop_layer_norm(_plain(dY), _plain(G), hat, scales, dX, dG, db)
        return dX, dG, db


def _plain(X: Any) -> Any:
    return numpy.ascontiguousarray(X, dtype="f")
