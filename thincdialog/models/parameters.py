"""All parameters of a model in one flat vector, and all gradients in another."""

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from thinc.api import Model, Optimizer
from thinc.types import Floats1d
from thinc.util import is_numpy_array, is_torch_array, torch2xp

from ..contract import show
from ..errors import ModelError, TrainingError
from ..layers.watched import look_at
from ..ops.alignment import aligned_size, aligned_zeros
from ..ops.devices import copied_to, on_device
from ..ops.later import Later, Number
from ..ops.table_gradient import Rows, TableGradient, TouchedRows
from ..optimizers.row_sparse import (
    RowSparseOptimizer,
    Segment,
    clears_gradients,
    clipped_step,
)
from ..optimizers.state import KEY
from .torch_tensors import bind_tensor, seed_torch, tensors_of


class Slot(NamedTuple):
    """Describe where one parameter lies in the flat vectors.

    node (int): Position of the parameter's node in ``model.walk()``.
    name (str): Name of the node and the parameter, such as "linear.W".
    shape (Tuple[int, ...]): Shape of the parameter.
    offset (int): Index of its first float. Frozen parameters come after all others. Tied
        parameters have the same offset.
    param (str): Name of the parameter alone; "" if the slot was read from a file.
    """

    node: int
    name: str
    shape: Tuple[int, ...]
    offset: int
    param: str = ""

    @property
    def size(self) -> int:
        """Number of floats in the parameter."""
        return math.prod(self.shape)

    def of(self, vector: Floats1d) -> Any:
        """Return the parameter's part of a flat vector as a view, in the parameter's shape."""
        return vector[self.offset : self.offset + self.size].reshape(self.shape)

    def __str__(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.shape))}"


class FlatParameters:
    """Move a model's parameters and gradients into two flat vectors.

    The parameters and gradients of the nodes become views of the vectors. They stay views after
    ``inc_grad`` and after in-place optimizers (not after ``model.from_bytes``: use ``load``).
    Shared arrays are stored once.

    Gradients of embedding tables are kept as rows. Reading ``gradients`` writes them to the vector,
    and so to the nodes' views of it.

    Tensors of PyTorch modules become views in the same way. Those without ``requires_grad`` lie in
    a vector that no optimizer sees, so nothing changes them; a saved model holds both vectors.

    model (Model): An initialised model of Thinc layers and PyTorch modules, all on the same ops.
    values (Floats1d): All trainable parameters; the few floats of padding between them are zero.
    gradients (Floats1d): Their gradients, in the same layout; zero at first.
    frozen (Floats1d): Parameters that are not trained, and buffers of PyTorch modules.
    slots (List[Slot]): One for every parameter of every node, in the order of ``model.walk()``;
        frozen ones last.
    n_parameters (int): Number of floats, frozen ones included, tied ones counted once.
    RAISES (ModelError): If the model has layers that are neither Thinc's nor PyTorch's, or a
        parameter has no value.
    """

    def __init__(self, model: Model):
        self.ops = model.ops
        self.slots: List[Slot] = []
        nodes = list(model.walk())
        arrays = [
            (index, name, array)
            for index, node in enumerate(nodes)
            for name, array in _arrays_of(node).items()
        ]
        arrays.sort(key=lambda each: _is_frozen(each[2]))
        laid: Dict[int, int] = {}  # Array's id to its offset.
        length = n_learned = self.n_parameters = 0
        for index, name, array in arrays:
            offset = laid.setdefault(id(array), length)
            slot = Slot(index, f"{nodes[index].name}.{name}", tuple(array.shape), offset, name)
            self.slots.append(slot)
            if offset == length:
                length += aligned_size(slot.size)
                self.n_parameters += slot.size
            if not _is_frozen(array):
                n_learned = length
        self.values = aligned_zeros(n_learned, self.ops.xp)
        self.frozen = aligned_zeros(length - n_learned, self.ops.xp)
        self._gradients = aligned_zeros(n_learned, self.ops.xp)
        self._skipped = self.ops.xp.zeros((1,), dtype="i")
        for slot, (_, _, array) in zip(self.slots, arrays):
            is_torch = is_torch_array(array)
            self.view(slot)[...] = torch2xp(array.detach(), ops=self.ops) if is_torch else array
        self._bind(nodes)

    def view(self, slot: Slot) -> Any:
        """Return a parameter as a view of the flat vector."""
        n_learned = len(self.values)
        if slot.offset < n_learned:
            return slot.of(self.values)
        return slot._replace(offset=slot.offset - n_learned).of(self.frozen)

    def seed(self, seed: int, step: int, microbatch: int) -> None:
        """Seed PyTorch if the model has PyTorch modules, so that their random draws depend only on
        these three numbers."""
        if any(node.shims for node in self._nodes):
            seed_torch(seed, step, microbatch)

    @property
    def n_skipped(self) -> int:
        """Number of updates on a device that were skipped because the gradient was not finite.
        Reading it waits for the device."""
        return int(self._skipped[0])

    @property
    def gradients(self) -> Floats1d:
        """All gradients. You may read and change them (in tables, only the rows that have a
        gradient) until the next backward pass."""
        for table in self._tables:
            table.write()
        return self._gradients

    def _bind(self, nodes: List[Model]) -> None:
        """Make the nodes' parameters and gradients views of the vectors."""
        self._nodes = nodes
        self._segments = self._watch_tables(nodes)
        self._tables = [table for _, table in self._segments if table is not None]
        self._set_views()

    def _set_views(self) -> None:
        tensors = [tensors_of(node) for node in self._nodes]
        for slot in self.slots:
            node, tensor = self._nodes[slot.node], tensors[slot.node].get(slot.param)
            is_learned = slot.offset < len(self.values)
            gradient: Any = slot.of(self._gradients) if is_learned else None
            if tensor is None:
                node.set_param(slot.param, self.view(slot))
                node.set_grad(slot.param, gradient)
            else:
                bind_tensor(tensor, self.view(slot), gradient)

    def replica(self, model: Model) -> "FlatParameters":
        """Return the parameters of another model: the same values, with separate gradients. If the
        other model is on another device, the values are copied there.

        model (Model): Made by ``replicate`` from this object's model.
        """
        replica = object.__new__(FlatParameters)
        replica.__dict__.update(self.__dict__)
        replica.ops = model.ops
        replica.values = copied_to(model.ops, self.values)
        replica.frozen = copied_to(model.ops, self.frozen)
        with on_device(model.ops):
            replica._gradients = aligned_zeros(self.values.shape[0], model.ops.xp)
            replica._skipped = model.ops.xp.zeros((1,), dtype="i")
            replica._bind(list(model.walk()))
        return replica

    def __getstate__(self) -> Dict[str, Any]:
        # Neither the model nor the gradients are pickled: call ``replica`` with a model after
        # unpickling.
        names = ("slots", "n_parameters", "values", "frozen")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        values = state["values"]
        if is_numpy_array(values):  # Arrays on a GPU are always aligned.
            self.values = aligned_zeros(len(values), numpy)
            self.values[:] = values

    def move(self, values: Floats1d) -> None:
        """Keep the parameters in another vector from now on, such as shared memory. The parameters
        take the values in that vector, so copy the current ones there first.

        RAISES (ModelError): If the vector has another length.
        """
        self._check_length(values, len(self.values))
        self.values = values
        self._set_views()

    def offset_of(self, node: Model, param: str) -> int:
        """Return the offset of a node's parameter in the vectors.

        RAISES (StopIteration): If the model has no such node or parameter.
        """
        slots = (slot for slot in self.slots if self._nodes[slot.node] is node)
        return next(slot.offset for slot in slots if slot.param == param)

    @property
    def segments(self) -> List[Segment]:
        """Consecutive ranges that cover the vectors: one for each table whose gradient is kept as
        rows (it has a width), and one for each range between tables."""
        return [part for part, _ in self._segments]

    def take_rows(self) -> List[Rows]:
        """Return the gradients of the tables in ``segments`` and set them to zero. Other gradients
        stay in ``dense_gradients``."""
        taken = [table.rows() for table in self._tables]
        for table in self._tables:
            table.clear()
        return taken

    def give_rows(self, tables: Sequence[Rows]) -> None:
        """Set the gradients of the tables to rows that ``take_rows`` returned, or to a sum of such
        rows.

        tables (Sequence[Rows]): One for each table of ``segments``.
        """
        for table, given in zip(self._tables, tables):
            table.put(*given)

    @property
    def dense_gradients(self) -> Floats1d:
        """All gradients except those of tables; the tables' ranges hold no valid values."""
        return self._gradients

    def move_gradients(self, gradients: Floats1d) -> None:
        """Accumulate gradients in another vector from now on, such as shared memory.

        gradients (Floats1d): As long as ``values``, and zero.
        """
        self._check_length(gradients, len(self.values))
        self._gradients = gradients
        self._bind(self._nodes)

    def clear_gradients(self) -> None:
        """Set all gradients to zero. ``update`` does this itself."""
        self._gradients.fill(0)
        for table in self._tables:
            table.clear(is_zero=True)

    def load(self, vector: Floats1d) -> None:
        """Copy new values into the parameters; every view changes with them.

        vector (Floats1d): ``values``, then ``frozen``.
        RAISES (ModelError): If the vector has another length.
        """
        n_learned = len(self.values)
        self._check_length(vector, n_learned + len(self.frozen))
        self.values[:] = self.ops.asarray1f(vector[:n_learned])
        self.frozen[:] = self.ops.asarray1f(vector[n_learned:])

    def _check_length(self, vector: Floats1d, length: int) -> None:
        if vector.shape != (length,):
            raise ModelError(
                f"the weights have {vector.size} numbers, but the model has {length}: "
                "they belong to a model of another size."
            )

    def update(
        self,
        optimizer: Optimizer,
        scale: float = 1.0,
        error: Optional[Callable[[], Exception]] = None,
    ) -> Number:
        """Apply the gradients once, advance the optimizer's schedules, and clear the gradients.

        With a ``RowSparseOptimizer``, the update of an embedding table costs only as much as the
        rows that have a gradient.

        optimizer (Optimizer): Thinc optimizer for the whole vector: its ``grad_clip`` limits the
            norm of the whole gradient.
        scale (float): Factor of the gradients, such as 1 / number of examples.
        error (Optional[Callable]): Returns the error to raise for a gradient on a device that is
            not finite. Such a gradient changes no weights, and is only detected when the norm is
            read.
        RETURNS (Number): Norm of the scaled gradient before clipping.
        RAISES (TrainingError): If the gradient is not finite; then nothing is changed.
        """
        if isinstance(optimizer, RowSparseOptimizer):
            gradients, parts = self._gradients, self._parts()
        else:
            gradients, parts = self.gradients, [Segment(0, self._gradients.shape[0])]
        given = (optimizer, KEY, self.values, gradients, parts, scale, self.ops)
        norm: Number = clipped_step(*given, self._skipped)
        if not is_numpy_array(gradients):
            norm = Later(norm, error or _not_finite)
        elif not math.isfinite(norm):
            raise _not_finite()
        if not clears_gradients(optimizer, gradients):
            for part in parts:
                if part.rows is None:
                    gradients[part.start : part.stop].fill(0)
        for table in self._tables:
            table.clear(is_zero=not isinstance(optimizer, RowSparseOptimizer))
        optimizer.step_schedules()
        return norm

    def _watch_tables(self, nodes: List[Model]) -> List[Tuple[Segment, Optional[TableGradient]]]:
        """Return consecutive segments of the vectors: one for each table, with its gradient, and
        one for each range between tables. From now on the gradients of tables are kept as rows.

        A parameter is a table if all nodes that own it report the rows to which they add gradients.
        """
        owners: Dict[int, List[Slot]] = {}
        for slot in self.slots:
            owners.setdefault(slot.offset, []).append(slot)
        segments: List[Tuple[Segment, Optional[TableGradient]]] = []
        start, end = 0, self._gradients.shape[0]
        for slots in owners.values():
            first = slots[0]
            touched: List[Any] = [nodes[slot.node].attrs.get("touched_rows") for slot in slots]
            is_table = all(isinstance(rows, TouchedRows) for rows in touched)
            if is_table and all(slot.param == "E" for slot in slots):
                table = TableGradient(self.ops, first.of(self._gradients))
                for rows in touched:
                    rows.keep_in(table)
                if first.offset > start:
                    segments.append((Segment(start, first.offset), None))
                of_table = Segment(first.offset, first.offset + first.size, first.shape[1])
                segments.append((of_table, table))
                start = first.offset + aligned_size(first.size)
        return [*segments, (Segment(start, end), None)] if end > start else segments

    def _parts(self) -> List[Segment]:
        """Return the parts of the vectors that can have a gradient; of tables, only some rows."""
        parts = []
        for part, table in self._segments:
            rows, d_rows = table.rows() if table is not None else (None, None)
            parts.append(part._replace(rows=rows, d_rows=d_rows))
        return parts


def _arrays_of(node: Model) -> Dict[str, Any]:
    """Return the arrays of a node's parameters and the tensors of its PyTorch module, by name.

    RAISES (ModelError): If one of them cannot lie in a flat vector.
    """
    for name in node.param_names:
        if not node.has_param(name):
            raise ModelError(
                f"parameter '{name}' of layer '{node.name}' has no value: call "
                "model.initialize() with example data first."
            )
        array: Any = node.get_param(name)
        if not hasattr(array, "size"):
            raise ModelError(
                f"parameter '{name}' of layer '{node.name}' is {show(array)}, but should "
                f"be an array of float32 ({look_at(node) or 'see its init()'})."
            )
    return {**{name: node.get_param(name) for name in node.param_names}, **tensors_of(node)}


def _is_frozen(array: Any) -> bool:
    """Return whether an array is a tensor that is not trained. Arrays other than tensors are always
    trained."""
    return not getattr(array, "requires_grad", True)


def _not_finite() -> TrainingError:
    return TrainingError(
        "the gradient is not finite (NaN or infinity). Lower the learning rate, or set "
        "training.optimizer.grad_clip."
    )
