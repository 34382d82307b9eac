"""Activations that run compiled."""

from typing import Any, Callable, Tuple

import numpy

from .compiled import are_alike, load_kernels


def _pair(name: str) -> Tuple[Callable, Callable]:
    """The methods of an activation without settings, and of its gradient."""

    def activation(self: Any, X: Any, inplace: bool = False) -> Any:
        return self._cells(name, (X,), X if inplace else None)

    def gradient(self: Any, dY: Any, X: Any, inplace: bool = False) -> Any:
        return self._cells(f"backprop_{name}", (dY, X), dY if inplace else None)

    return activation, gradient


class CompiledActivations:
    """Part of ``DialogFastOps``: Thinc's activations and their gradients. What is not
    float32 and contiguous goes the way it went before."""

    relu, backprop_relu = _pair("relu")
    hard_swish, backprop_hard_swish = _pair("hard_swish")
    hard_swish_mobilenet, backprop_hard_swish_mobilenet = _pair("hard_swish_mobilenet")
    dish, backprop_dish = _pair("dish")
    gelu, backprop_gelu = _pair("gelu")
    gelu_approx, backprop_gelu_approx = _pair("gelu_approx")
    swish, _ = _pair("swish")

    def clipped_linear(
        self,
        X: Any,
        slope: float = 1.0,
        offset: float = 0.0,
        min_val: float = 0.0,
        max_val: float = 1.0,
        inplace: bool = False,
    ) -> Any:
        settings = (slope, offset, min_val, max_val)
        return self._cells("clipped_linear", (X,), X if inplace else None, *settings)

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
        settings = (slope, offset, min_val, max_val)
        return self._cells("backprop_clipped_linear", (dY, X), dY if inplace else None, *settings)

    def sigmoid(self, X: Any, *, inplace: bool = False) -> Any:
        return self._cells("sigmoid", (X,), X if inplace else None)

    def backprop_sigmoid(self, dY: Any, Y: Any, *, inplace: bool = False) -> Any:
        # Thinc's writes over Y.
        return self._cells("backprop_sigmoid", (dY, Y), Y if inplace else None)

    def backprop_swish(self, dY: Any, X: Any, Y: Any, inplace: bool = False) -> Any:
        return self._cells("backprop_swish", (dY, X, Y), dY if inplace else None)

    def mish(self, X: Any, threshold: float = 20.0, inplace: bool = False) -> Any:
        return self._cells("mish", (X,), X if inplace else None, threshold)

    def backprop_mish(self, dY: Any, X: Any, threshold: float = 20.0, inplace: bool = False) -> Any:
        return self._cells("backprop_mish", (dY, X), dY if inplace else None, threshold)

    def _cells(self, name: str, arrays: Tuple[Any, ...], out: Any, *settings: float) -> Any:
        """Call a kernel for each cell of the arrays.

        out (Optional[FloatsXd]): Where the result goes, one of the arrays; None for a new one.
        """
        if not are_alike(*arrays):
            return getattr(super(), name)(*arrays, *settings, inplace=out is not None)
        if out is None:
            out = numpy.empty(arrays[0].shape, dtype="f")
        cells = [array.reshape(-1) for array in arrays]
        # Python's floats: of another type, the kernel would be compiled anew.
        getattr(load_kernels("activations"), name)(*cells, *map(float, settings), out.reshape(-1))
        return out
