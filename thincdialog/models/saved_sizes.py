"""Memory for the parameters of a saved model is taken only as far as its weights are there.

Sizes stand in its config, which may say anything; layers take their memory before the weights
are read.
"""

import copy
import math
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

from thinc.api import Model, Ops

from ..errors import ModelError
from ..files.array_file import n_numbers
from .weights_file import WEIGHTS, read_slots

# A layer may take this many numbers for other things, and all layers together this many times
# what the weights hold: some put a parameter together from parts.
N_OTHER, N_TIMES = 4096, 4


@contextmanager
def sizes_of(folder: Path, model: Model) -> Iterator[None]:
    """A stretch in which a model is laid out for saved weights: initializers draw nothing, as
    the weights come from the file, and no layer takes more than these hold.

    folder (Path): Of the saved model.
    RAISES (ModelError): If a layer asks for more, or the folder is damaged.
    """
    n_saved = n_numbers(folder / WEIGHTS)
    nodes = list(model.walk())
    largest = [0] * len(nodes)
    for slot in read_slots(folder, n_saved):
        if slot.node < len(nodes):
            largest[slot.node] = max(largest[slot.node], slot.size)
    room = _Room(folder, N_TIMES * n_saved + N_OTHER * len(nodes))
    before = [node.init for node in nodes]
    for node, most in zip(nodes, largest):
        if node.param_names:
            node.init = partial(_init, room, most, node.init)
    try:
        yield
    finally:
        for node, init in zip(nodes, before):
            node.init = init


class _Room:
    """What is left of the numbers that layers may ask for."""

    def __init__(self, folder: Path, left: int):
        self.folder, self.left = folder, left

    def take(self, layer: str, most: int, shape: Any) -> None:
        size = math.prod(shape) if isinstance(shape, (tuple, list)) else int(shape)
        self.left -= size
        if size > max(most, N_OTHER) or self.left < 0:
            raise ModelError(
                f"{self.folder}  config.cfg asks for {size:,} numbers in the layer '{layer}', for "
                f"which the saved weights have {most:,}. Load it with the config it was saved with."
            )


def _init(
    room: _Room, most: int, init: Callable, node: Model, X: Any = None, Y: Any = None
) -> None:
    """Run a layer's own ``init`` with ops that take no more than there is room for."""
    ops = node.ops
    limited: Any = copy.copy(ops)

    def alloc(shape: Any, **options: Any) -> Any:
        room.take(node.name, most, shape)
        return type(ops).alloc(ops, shape, **options)

    limited.alloc = alloc
    node.ops = limited
    try:
        _undrawn(init)(node, X=X, Y=Y)
    finally:
        node.ops = ops


def _undrawn(init: Callable) -> Callable:
    """The same with zeros for what its initializers would draw."""
    if not isinstance(init, partial):
        return init
    named = {name: _undrawn_one(arg) for name, arg in init.keywords.items()}
    return partial(init.func, *map(_undrawn_one, init.args), **named)


def _undrawn_one(given: Any) -> Any:
    return _zeros if callable(given) and not isinstance(given, Model) else given


def _zeros(ops: Ops, shape: Tuple[int, ...]) -> Any:
    return ops.alloc(shape, dtype="f")
