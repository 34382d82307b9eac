"""Optimizers that update only those rows of embedding tables that have a gradient."""

import math
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
from thinc.api import Ops, Optimizer
from thinc.optimizers import FloatOrSeq
from thinc.types import Floats1d, Floats2d, FloatsXd, Ints1d
from thinc.util import get_array_module, is_numpy_array

from ..ops.alignment import address
from ..ops.compiled import load_kernels
from ..ops.dialog_fast_ops import is_compiled
from ..ops.gpu import kernels
from .adam import BLOCK_FLOATS, FIRST_ROW, thincs_step
from .state import Key


class Segment(NamedTuple):
    """Describe a range of the flat vectors that an update changes, or rows of a table in this
    range.

    start (int): First index.
    stop (int): End of the range (exclusive).
    width (int): Floats in a row if the range is a table, else 0.
    rows (Optional[Ints1d]): Distinct rows that have a gradient, int64, on the host; None for the
        whole range.
    d_rows (Optional[Floats2d]): The gradient of these rows, shape (n_rows, width), if it is not in
        the flat vector of gradients.
    """

    start: int
    stop: int
    width: int = 0
    rows: Optional[Ints1d] = None
    d_rows: Optional[Floats2d] = None

    def view(self, vector: Floats1d) -> Any:
        """Return this range of a flat vector as a view: 1-d, or 2-d with the rows of a table."""
        segment = vector[self.start : self.stop]
        return segment if self.rows is None else segment.reshape((-1, self.width))

    def gradient(self, vector: Floats1d) -> Any:
        """Return the gradient of this range: 1-d, or (n_rows, width) for only the rows with a
        gradient."""
        if self.d_rows is not None:
            return self.d_rows
        view = self.view(vector)
        return view if self.rows is None else view.take(self.rows_on(vector), axis=0)

    def rows_on(self, vector: Floats1d) -> Any:
        """Return the rows, on the device of a flat vector."""
        asarray: Any = get_array_module(vector).asarray
        return asarray(self.rows)

    def blocks(self, gradient: Any) -> Iterator[slice]:
        """Yield slices of the gradient: cache-sized blocks on the CPU, a single block on a GPU."""
        n = gradient.shape[0]
        size = BLOCK_FLOATS if self.rows is None else max(1, BLOCK_FLOATS // self.width)
        if not is_numpy_array(gradient):
            size = max(1, n)
        for start in range(0, n, size):
            yield slice(start, start + size)

    def square_sum(self, vector: Floats1d, ops: Optional[Ops] = None) -> float:
        """Return the sum of the squares of the gradient, in an order that does not depend on
        threads.

        vector (Floats1d): The flat vector of gradients.
        ops (Optional[Ops]): Ops of the model; if they have compiled kernels, one of them computes
            the sum.
        """
        gradient = self.gradient(vector)
        if is_compiled(ops):
            return load_kernels("steps").square_sum(gradient.reshape(-1))
        xp, total = get_array_module(vector), 0.0
        for now in self.blocks(gradient):
            block = gradient[now].reshape(-1)
            total += float(xp.einsum("i,i->", block, block))
        return total


class RowSparseOptimizer(Optimizer):
    """Base of optimizers that update only table rows with a gradient. A subclass defines which
    arrays it keeps (``kept``) and how a step changes a block of them (``step_block``).

    ``update_parts`` is the sparse step: table rows without a gradient keep weights and state.
    Averages are updated every ``average_every`` steps, with the decay of that many steps;
    ``current_average`` includes the steps since the last update.

    is_shared (bool): Whether other workers change the same state at the same time. If so,
        ``step_block`` gets copies of the state, which cannot change before they are written back.
    kept (Sequence[str]): Which of ``mom1`` and ``mom2`` hold arrays, in the layout of the weights.
    kernel (str): Name of the same step as a compiled kernel in ``ops/kernels/steps.py``, for
        models on compiled ops.
    """

    is_shared = False
    kept: Sequence[str] = ()
    kernel = ""

    def __init__(self, learn_rate: FloatOrSeq, *, average_every: int = 8, **settings: Any):
        super().__init__(learn_rate, **settings)
        if average_every < 1:
            raise ValueError(f"average_every is {average_every}, but must be 1 or more (steps)")
        self.average_every = average_every

    def state_arrays(self, key: Key, values: Floats1d) -> List[Any]:
        """Return the arrays that are kept in addition to the weights, in the same layout; create
        those that are missing, with zeros.

        key (Key): Key of the state.
        values (Floats1d): All parameters.
        """
        all_arrays = [getattr(self, name) for name in self.kept]
        for arrays in all_arrays:
            if key not in arrays:
                arrays[key] = get_array_module(values).zeros_like(values)
        return [arrays[key] for arrays in all_arrays]

    def step_block(self, xp: Any, dW: Any, state: List[Any], n_updates: int) -> Any:
        """Return the change to subtract from a block of the weights, and update the state in place.

        dW (FloatsXd): Gradient of the block, a copy that may be overwritten.
        state (List[FloatsXd]): The block of each of ``state_arrays``, in the shape of the gradient.
        n_updates (int): Number of this step, from 1.
        RETURNS (FloatsXd): In the shape of the gradient.
        """
        raise NotImplementedError

    def kernel_settings(self, scale: float, n_updates: int) -> Tuple[float, ...]:
        """Return the settings of the kernels, except the last one, the weight decay.

        scale (float): Factor of the gradient, applied first.
        n_updates (int): Number of this step, from 1.
        """
        raise NotImplementedError

    def update_parts(
        self,
        key: Key,
        values: Floats1d,
        gradients: Floats1d,
        parts: Sequence[Segment],
        *,
        scale: Any = 1.0,
        ops: Optional[Ops] = None,
    ) -> None:
        """Take one step. It changes values in place and does not change the gradients, except on a
        device, where the gradients of the parts may be zero afterwards.

        key (Key): Key of the state.
        values (Floats1d): All parameters, shape (n,), float32.
        gradients (Floats1d): Their gradients, shape (n,), float32.
        parts (Sequence[Segment]): The parts with a gradient; nothing else is changed.
        scale (float): Factor of the gradients, applied first. It must include the clipping by the
            global norm (see ``clip_scale``). On a device, the array from ``found_factor``.
        ops (Optional[Ops]): Ops of the model; if they have compiled kernels, these take the step.
        """
        arrays: List[Any] = [values, *self.state_arrays(key, values)]
        self.nr_update[key] += 1
        n_updates = self.nr_update[key]
        is_one_kernel = not isinstance(scale, float) and self._has_kernel()
        if is_one_kernel:
            self._step_of_kernel(arrays, gradients, parts, scale, n_updates)
        for part in () if is_one_kernel else parts:
            views, gradient = [part.view(array) for array in arrays], part.gradient(gradients)
            # The kernels support decay of the weights, not of the gradient.
            if is_compiled(ops) and (self.L2_is_weight_decay or not self.L2):
                self._step_compiled(views, gradient, part.rows, scale, n_updates)
                continue
            rows = None if part.rows is None else part.rows_on(values)
            for now in part.blocks(gradient):
                index = now if rows is None else rows[now]
                self._step(views, index, gradient[now], scale, n_updates)
        if self.averages is not None and n_updates % self.average_every == 0:
            if key in self.averages:
                share = _share_of_newest(n_updates, self.average_every)
                _move_average(self.averages[key], values, share, ops)
            else:
                self.averages[key] = values.copy()

    def _step(
        self,
        views: List[Any],
        index: Union[slice, Ints1d],
        gradient: Any,
        scale: Any,
        n_updates: int,
    ) -> None:
        """Take a step for one block of the weights, with NumPy or CuPy."""
        weights, *arrays = views
        xp = get_array_module(weights)
        if isinstance(scale, float):
            dW = gradient * xp.float32(scale)
        else:
            dW = scaled_on_device(xp, gradient, scale)
        if self.L2 and not self.L2_is_weight_decay:
            dW += xp.float32(self.L2) * _block(weights, index)
        is_view = isinstance(index, slice)
        state = [_block(array, index) for array in arrays]
        if is_view and self.is_shared:
            state = [view.copy() for view in state]
        step = self.step_block(xp, dW, state, n_updates)
        if not is_view or self.is_shared:
            for array, changed in zip(arrays, state):
                array[index] = changed
        # Read the weights as late as possible, because changes that other workers make to these
        # rows before they are written back are lost.
        W = _block(weights, index)
        W -= step
        if self.L2 and self.L2_is_weight_decay:
            W *= xp.float32(1 - self.learn_rate * self.L2)
        if not is_view:
            weights[index] = W

    def _has_kernel(self) -> bool:
        """Return whether there is a GPU kernel for the step."""
        return False

    def _step_of_kernel(
        self, arrays: Any, gradients: Any, parts: Sequence[Segment], found: Any, n_updates: int
    ) -> None:
        raise NotImplementedError

    def _step_compiled(
        self, views: List[Any], dW: Any, rows: Optional[Ints1d], scale: float, n_updates: int
    ) -> None:
        if rows is None:  # One row that holds the whole range.
            views, dW, rows = [each[None] for each in views], dW[None], FIRST_ROW
        (W, *arrays), step = views, getattr(load_kernels("steps"), self.kernel)
        settings = (*self.kernel_settings(scale, n_updates), self.learn_rate * self.L2)
        step(W, dW, *arrays, rows, tuple(map(float, settings)))

    def __call__(
        self, key: Key, weights: FloatsXd, gradient: FloatsXd, *, lr_scale: float = 1.0
    ) -> Tuple[FloatsXd, FloatsXd]:
        """Take one step for a whole parameter, as Thinc's optimizers do, and clear the gradient."""
        values: Any = weights.reshape((-1,))
        gradients: Any = gradient.reshape((-1,))
        norm = float(get_array_module(values).linalg.norm(gradients))
        learn_rate = self.learn_rate
        self.learn_rate = learn_rate * lr_scale
        try:
            whole = [Segment(0, values.shape[0])]
            self.update_parts(key, values, gradients, whole, scale=self.clip_scale(norm))
        finally:
            self.learn_rate = learn_rate
        gradient.fill(0)
        return values.reshape(weights.shape), gradient

    def clip_scale(self, norm: float) -> float:
        """Return the factor that reduces a gradient with this global norm to ``grad_clip``."""
        if not self.grad_clip or norm <= self.grad_clip:
            return 1.0
        return self.grad_clip / norm

    def current_average(self, key: Key, values: Floats1d) -> Any:
        """Return the moving average, including the steps since it was last updated. The stored
        average does not change, so that reading it does not affect later steps.

        values (Floats1d): All parameters, as they are now.
        RETURNS (Optional[Floats1d]): None if there was no update of the average yet.
        """
        n_updates = self.nr_update[key]
        # Workers allocate the average before its first update; until then, it holds the initial
        # weights.
        if not self.averages or key not in self.averages or n_updates < self.average_every:
            return None
        n_since = n_updates % self.average_every
        if not n_since:
            return self.averages[key]
        average = self.averages[key].copy()
        _move_average(average, values, _share_of_newest(n_updates, n_since))
        return average


def _share_of_newest(n_updates: int, n_since: int) -> float:
    """Return the weight of the current parameters in their average: Thinc's, for the steps since
    the last update."""
    return float(1 - min((1.0 + n_updates) / (10.0 + n_updates), 0.9999) ** n_since)


def _move_average(average: Any, values: Any, share: float, ops: Optional[Ops] = None) -> None:
    if is_compiled(ops):
        load_kernels("steps").move_average(average, values, share)
        return
    part = numpy.float32(share)
    for now in Segment(0, values.shape[0]).blocks(values):
        average[now] += part * (values[now] - average[now])


def _block(array: Any, index: Union[slice, Ints1d]) -> Any:
    """Return a block of an array: a view for a slice, a copy for row numbers."""
    return array[index] if isinstance(index, slice) else array.take(index, axis=0)


def clipped_step(
    optimizer: Optimizer,
    key: Key,
    values: Floats1d,
    gradients: Floats1d,
    parts: Sequence[Segment],
    scale: float,
    ops: Ops,
    n_skipped: Any = None,
) -> Any:
    """Take one step of any optimizer, with the whole gradient clipped. It changes values in place,
    unless the gradient is not finite. On a device, nothing waits: the norm and the factor of the
    gradient stay there.

    Other arguments are those of ``RowSparseOptimizer.update_parts``.

    parts (Sequence[Segment]): The parts with a gradient; for Thinc's optimizers, all parameters.
    n_skipped (Optional[Ints1d]): Counter on the device that is raised by 1 if the gradient is not
        finite; int32, shape (1,).
    RETURNS (Union[float, Floats1d]): Norm of the scaled gradient before clipping; on a device, in
        an array of shape (1,). If it is not finite there, the step used a gradient of 0, and Adam
        changed nothing.
    """
    is_ours, is_on_host = isinstance(optimizer, RowSparseOptimizer), is_numpy_array(gradients)
    norm: Any
    factor: Any = scale
    if is_on_host:
        norm = abs(scale) * math.sqrt(sum(part.square_sum(gradients, ops) for part in parts))
        if not math.isfinite(norm):
            return norm
        if is_ours:
            factor *= optimizer.clip_scale(norm)  # type: ignore[attr-defined]
    else:
        bounds, tables = dense_and_tables(parts)
        limit, d_rows = optimizer.grad_clip if is_ours else 0.0, [part.d_rows for part in tables]
        factor = kernels.found_factor(gradients, bounds, d_rows, scale, limit, n_skipped)
        norm = factor[:1]
    if isinstance(optimizer, RowSparseOptimizer):
        optimizer.update_parts(key, values, gradients, parts, scale=factor, ops=ops)
        return norm
    if is_on_host:
        stepped = thincs_step(optimizer, key, values, gradients, ops, scale)
    else:
        gradients[:] = scaled_on_device(get_array_module(gradients), gradients, factor)
        stepped, _ = optimizer(key, values, gradients)
    if address(stepped) != address(values):  # The optimizer does not work in place.
        values[:] = stepped
    return norm


def clears_gradients(optimizer: Optimizer, gradients: Any) -> bool:
    """Return whether ``clipped_step`` sets the gradients of the parts to zero."""
    if is_numpy_array(gradients):
        return not isinstance(optimizer, RowSparseOptimizer)
    return isinstance(optimizer, RowSparseOptimizer) and optimizer._has_kernel()


def dense_and_tables(parts: Sequence[Segment]) -> Tuple[Any, List[Segment]]:
    """Return the parts in the form that kernels need: begin and end of each dense part, on the
    device; and the tables."""
    dense = tuple((part.start, part.stop) for part in parts if part.rows is None)
    return kernels.bounds(dense), [part for part in parts if part.rows is not None]


def scaled_on_device(xp: Any, gradient: Any, found: Any) -> Any:
    """Return a gradient times the factor from ``found_factor``; zeros if the factor is 0."""
    return xp.where(found[1] != 0, gradient * found[1], xp.float32(0))
