"""All parameters of a model in one vector, all gradients in another."""

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
from ..ops.table_gradient import TableGradient, TouchedRows
from ..optimizers.row_sparse import (
    Rows,
    RowSparseOptimizer,
    Segment,
    clears_gradients,
    clipped_step,
)
from ..optimizers.state import KEY
from .torch_tensors import bind_tensor, seed_torch, tensors_of


class Slot(NamedTuple):
    """Where one parameter lies in the flat vectors.

    node (int): Position of its node in ``model.walk()``.
    name (str): Of the node and the parameter, such as "linear.W".
    shape (Tuple[int, ...]): Its shape.
    offset (int): Its first float; frozen parameters come after all others. Tied parameters share
        one.
    param (str): Name of the parameter alone; "" where only a file has the slot.
    """

    node: int
    name: str
    shape: Tuple[int, ...]
    offset: int
    param: str = ""

    @property
    def size(self) -> int:
        """Floats it holds."""
        return math.prod(self.shape)

    def of(self, vector: Floats1d) -> Any:
        """Its part of a flat vector, in its shape; a view."""
        return vector[self.offset : self.offset + self.size].reshape(self.shape)

    def __str__(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.shape))}"


class FlatParameters:
    """Moves a model's parameters and gradients into two flat vectors.

    The nodes' own become views of them, and stay so through ``inc_grad`` and in-place
    optimizers (not ``model.from_bytes``: use ``load``). Shared arrays are laid once.

    Gradients of embedding tables are kept as rows, and are in the vector, and so in the
    nodes' views of it, from when ``gradients`` is read.

    Tensors of PyTorch modules become views in the same way. Those without ``requires_grad`` lie in
    a vector that no optimizer sees, so nothing changes them; a saved model holds both vectors.

    model (Model): An initialised model of Thinc layers and PyTorch modules, all on the same ops.
    values (Floats1d): All parameters to learn; the few floats between them are zero.
    gradients (Floats1d): Their gradients, laid out alike; zero at first.
    frozen (Floats1d): Parameters that are not learned, and buffers of PyTorch modules.
    slots (List[Slot]): One for every parameter of every node, as ``model.walk()`` goes; frozen
        ones last.
    n_parameters (int): Number of floats, frozen ones included, tied ones counted once.
    RAISES (ModelError): If the model has layers that are neither Thinc's nor PyTorch's, or
        parameters no value.
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
        laid: Dict[int, int] = {}  # Where each array begins.
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
        """A parameter as it is now, a view of the vectors."""
        n_learned = len(self.values)
        if slot.offset < n_learned:
            return slot.of(self.values)
        return slot._replace(offset=slot.offset - n_learned).of(self.frozen)

    def seed(self, seed: int, step: int, microbatch: int) -> None:
        """Make all random draws of PyTorch modules, if there are any, a function of these."""
        if any(node.shims for node in self._nodes):
            seed_torch(seed, step, microbatch)

    @property
    def n_skipped(self) -> int:
        """Updates on a device whose gradient was not finite, and not used; waits for it."""
        return int(self._skipped[0])

    @property
    def gradients(self) -> Floats1d:
        """All gradients, to be read and changed (of tables, in rows that have one), but not kept
        beyond the next backward pass."""
        self.write_rows()
        return self._gradients

    def write_rows(self) -> None:
        """Put what is kept of the tables' gradients into the vector: it takes memory no more."""
        for table in self._tables:
            table.write()

    def _bind(self, nodes: List[Model]) -> None:
        """Make the nodes' parameters and gradients views of the vectors."""
        self._nodes = nodes
        self._stretches = self._watch_tables(nodes)
        self._tables = [table for _, table in self._stretches if table is not None]
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
        """Another model's, over the same values (if its ops are those of another device, copies of
        them), with gradients of its own.

        model (Model): From ``replicate`` of this one's.
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
        # Of no model: who reads it calls ``replica`` with one. Gradients are not saved.
        names = ("slots", "n_parameters", "values", "frozen")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        values = state["values"]
        if is_numpy_array(values):  # A GPU's are aligned.
            self.values = aligned_zeros(len(values), numpy)
            self.values[:] = values

    def move(self, values: Floats1d) -> None:
        """Keep the parameters in another vector, such as shared memory, from now on. What is
        in it counts: copy them there before.

        RAISES (ModelError): If the vector has another length.
        """
        self._check_length(values, len(self.values))
        self.values = values
        self._set_views()

    def offset_of(self, node: Model, param: str) -> int:
        """Where a parameter of a node begins in the vectors.

        RAISES (StopIteration): If the model has no such node or parameter.
        """
        slots = (slot for slot in self.slots if self._nodes[slot.node] is node)
        return next(slot.offset for slot in slots if slot.param == param)

    @property
    def stretches(self) -> List[Segment]:
        """The vectors from one end to the other: tables whose gradients are kept as rows, which
        have a width, and all that lies between."""
        return [part for part, _ in self._stretches]

    def take_rows(self) -> List[Rows]:
        """The gradients of the tables of ``stretches``, which are zero from then on. What is
        not in a table stays where it is, in ``dense_gradients``."""
        taken = [table.rows() for table in self._tables]
        for table in self._tables:
            table.clear()
        return taken

    def give_rows(self, tables: Sequence[Rows]) -> None:
        """What was taken by ``take_rows``, or a sum of such, is the gradient of the tables from now
        on.

        tables (Sequence[Rows]): One for each table of ``stretches``.
        """
        for table, given in zip(self._tables, tables):
            table.put(*given)

    @property
    def dense_gradients(self) -> Floats1d:
        """All gradients but those of tables, whose places hold nothing to be read."""
        return self._gradients

    def move_gradients(self, gradients: Floats1d) -> None:
        """Gather gradients in another vector from now on, such as shared memory.

        gradients (Floats1d): As long as ``values``, and zero.
        """
        self._check_length(gradients, len(self.values))
        self._gradients = gradients
        self._bind(self._nodes)

    def clear_gradients(self) -> None:
        """Set all gradients to zero; ``update`` does it itself."""
        self._gradients.fill(0)
        for table in self._tables:
            table.clear(is_zero=True)

    def load(self, vector: Floats1d) -> None:
        """Copy other values in; every view of them changes with it.

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
        """Apply the gradients once, advance the optimizer's schedules, clear the gradients.

        With a ``RowSparseOptimizer``, embedding tables cost only the rows that have a gradient.

        optimizer (Optimizer): Thinc's, for the whole vector: its ``grad_clip`` limits the norm
            of the whole gradient.
        scale (float): Factor of the gradients, such as 1 / number of examples.
        error (Optional[Callable]): Gives the error for a gradient on a device that is not
            finite, which changes no weights, and is found when the norm is read.
        RETURNS (Number): Norm of the scaled gradient before clipping.
        RAISES (TrainingError): If the gradient is not finite; nothing is changed then.
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
        """Stretches of the vectors, one after the other: tables whose every owner says which
        rows it adds to, which are kept from now on, and all that lies between."""
        owners: Dict[int, List[Slot]] = {}
        for slot in self.slots:
            owners.setdefault(slot.offset, []).append(slot)
        stretches: List[Tuple[Segment, Optional[TableGradient]]] = []
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
                    stretches.append((Segment(start, first.offset), None))
                of_table = Segment(first.offset, first.offset + first.size, first.shape[1])
                stretches.append((of_table, table))
                start = first.offset + aligned_size(first.size)
        return [*stretches, (Segment(start, end), None)] if end > start else stretches

    def _parts(self) -> List[Segment]:
        """What can have a gradient: of tables, some rows."""
        parts = []
        for part, table in self._stretches:
            rows, d_rows = table.rows() if table is not None else (None, None)
            parts.append(part._replace(rows=rows, d_rows=d_rows))
        return parts


def _arrays_of(node: Model) -> Dict[str, Any]:
    """Arrays of a node's parameters and tensors of its PyTorch module, by name.

    RAISES (ModelError): If one of them cannot lie in a vector.
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
    """Whether it is a tensor that is not learned; arrays have no such attribute."""
    return not getattr(array, "requires_grad", True)


def _not_finite() -> TrainingError:
    return TrainingError(
        "the gradient is not finite (NaN or infinity). Lower the learning rate, or set "
        "training.optimizer.grad_clip."
    )
