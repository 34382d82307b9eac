"""LSTM that runs compiled."""

from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy

from .compiled import load_kernels


class LSTMRun(NamedTuple):
    """What was computed in one direction, packed step by step.

    G (Floats2d): Gates i, f, o, g side by side, shape (n_rows, 4 nH).
    C (Floats2d): Cells, shape (n_rows, nH).
    T (Floats2d): tanh of the cells.
    H (Floats2d): Outputs.
    """

    G: Any
    C: Any
    T: Any
    H: Any


class CompiledRecurrence:
    """Part of ``DialogFastOps``: all steps of an LSTM in one call."""

    def lstm_steps(self, G: Any, U: Any, sizes: Sequence[int], start: Any = None) -> LSTMRun:
        """Run over all steps.

        G (Floats2d): W x + b, shape (n_rows, 4 nH), float32; is changed to the gates.
        U (Floats2d): Shape (4 nH, nH).
        sizes (Sequence[int]): Rows of each step, never more than of the one before.
        start (Optional[Tuple[Floats1d, Floats1d]]): Output and cell before the first
            step, shape (nH,); zeros if None.
        """
        h0, c0 = _start(U, start)
        C, T, H = (numpy.empty((G.shape[0], U.shape[1]), dtype="f") for _ in range(3))
        Ut = numpy.ascontiguousarray(U.T)
        load_kernels("recurrent").lstm(G, Ut, h0, c0, _int64(sizes), C, T, H)
        return LSTMRun(G, C, T, H)

    def backprop_lstm_steps(
        self, dH: Any, U: Any, sizes: Sequence[int], run: LSTMRun, start: Any = None
    ) -> Tuple[Any, Any]:
        """Go back through all steps.

        dH (Floats2d): Gradient of the outputs, shape (n_rows, nH), float32.
        U, sizes, start: As for ``lstm_steps``, which gave ``run``.
        RETURNS (Tuple[Floats2d, Floats2d]): Gradient before the gates' activation, shape
            (n_rows, 4 nH), and the outputs of the step before, (n_rows, nH).
        """
        h0, c0 = _start(U, start)
        dG, before = numpy.empty_like(run.G), numpy.empty_like(run.H)
        load_kernels("recurrent").backprop_lstm(
            dH, numpy.ascontiguousarray(U), h0, c0, _int64(sizes), *run, dG, before
        )
        return dG, before


def _start(U: Any, start: Any) -> List[Any]:
    if start is None:
        return [numpy.zeros((U.shape[1],), dtype="f") for _ in range(2)]
    return [numpy.ascontiguousarray(array, dtype="f") for array in start]


def _int64(sizes: Sequence[int]) -> Any:
    return numpy.asarray(sizes, dtype="i8")
