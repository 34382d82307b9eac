"""Activations that run compiled."""

from typing import Any, Callable, Tuple

import numpy

from .compiled import load_kernels


def are_plain(*arrays: Any) -> bool:
    """Whether kernels can take these: NumPy's, float32, contiguous."""
    return all(
        isinstance(array, numpy.ndarray)
        and array.dtype == numpy.float32
        and array.flags.c_contiguous
        for array in arrays
    )


def are_alike(first: Any, *others: Any) -> bool:
    """Whether kernels can take these as cells that belong together."""
    return are_plain(first, *others) and all(array.shape == first.shape for array in others)


def _pair(name: str) -> Tuple[Callable, Callable]:
    """The methods of an activation without settings, and of its gradient."""

    def activation(self: Any, X: Any, inplace: bool = False) -> Any:
        return self._map(name, X, inplace)

    def gradient(self: Any, dY: Any, X: Any, inplace: bool = False) -> Any:
        return self._back(name, (dY, X), inplace)

    return activation, gradient


class CompiledActivations:
    """Part of ``DialogFastOps``: Thinc's activations and their gradients. What is not
    float32 and contiguous goes the way it went before."""

    def relu(self, X: Any, inplace: bool = False) -> Any:
        return self._map("relu", X, inplace)

    def backprop_relu(self, dY: Any, Y: Any, inplace: bool = False) -> Any:
        return self._back("relu", (dY, Y), inplace)

    def clipped_linear(
        self,
        X: Any,
        slope: float = 1.0,
        offset: float = 0.0,
        min_val: float = 0.0,
        max_val: float = 1.0,
        inplace: bool = False,
    ) -> Any:
        return self._map("clipped_linear", X, inplace, slope, offset, min_val, max_val)

    def backprop_clipped_linear(
        self,
        dY: Any,
        X: Any,
        slope: float = 1.0,
        offset: float = 0.0,
        min_val: float = 0.0,
        max_val: float = 1.0,
        inplace: bool = False,
    ) -> Any:
        return self._back("clipped_linear", (dY, X), inplace, slope, offset, min_val, max_val)

    def sigmoid(self, X: Any, *, inplace: bool = False) -> Any:
        if not are_plain(X):
            return super().sigmoid(X, inplace=inplace)  # type: ignore[misc]
        return _apply("logistic", (X,), X if inplace else None)

    def backprop_sigmoid(self, dY: Any, Y: Any, *, inplace: bool = False) -> Any:
        if not are_alike(dY, Y):
            return super().backprop_sigmoid(dY, Y, inplace=inplace)  # type: ignore[misc]
        return _apply("backprop_logistic", (dY, Y), Y if inplace else None)

    def swish(self, X: Any, inplace: bool = False) -> Any:
        return self._map("swish", X, inplace)

    def backprop_swish(self, dY: Any, X: Any, Y: Any, inplace: bool = False) -> Any:
        return self._back("swish", (dY, X, Y), inplace)

    hard_swish, backprop_hard_swish = _pair("hard_swish")
    hard_swish_mobilenet, backprop_hard_swish_mobilenet = _pair("hard_swish_mobilenet")
    dish, backprop_dish = _pair("dish")
    gelu, backprop_gelu = _pair("gelu")
    gelu_approx, backprop_gelu_approx = _pair("gelu_approx")

    def mish(self, X: Any, threshold: float = 20.0, inplace: bool = False) -> Any:
        return self._map("mish", X, inplace, threshold)

    def backprop_mish(self, dY: Any, X: Any, threshold: float = 20.0, inplace: bool = False) -> Any:
        return self._back("mish", (dY, X), inplace, threshold)

    def _map(self, name: str, X: Any, inplace: bool, *settings: float) -> Any:
        if not are_plain(X):
            return getattr(super(), name)(X, *settings, inplace=inplace)
        return _apply(name, (X,), X if inplace else None, *settings)

    def _back(self, name: str, arrays: Any, inplace: bool, *settings: float) -> Any:
        name = f"backprop_{name}"
        if not are_alike(*arrays):
            return getattr(super(), name)(*arrays, *settings, inplace=inplace)
        return _apply(name, arrays, arrays[0] if inplace else None, *settings)


def _apply(name: str, arrays: Any, out: Any, *settings: float) -> Any:
    if out is None:
        out = numpy.empty(arrays[0].shape, dtype="f")
    kernel = getattr(load_kernels("activations"), name)
    # Python's floats: of another type, the kernel would be compiled anew.
    cells = [array.reshape(-1) for array in arrays]
    kernel(*cells, *map(float, settings), out.reshape(-1))
    return out
