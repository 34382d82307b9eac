"""Weights on disk: one float32 vector, and a description that must match it.

``weights.npy`` is read without unpickling. ``layout.json`` lists the nodes in order with their
dimensions, the parameters with shapes and offsets, and the SHA-256 of the vector.
"""

import hashlib
from pathlib import Path
from typing import Any, Dict, List, Mapping

import numpy as np
from thinc.api import Model

from ..errors import ModelError
from ..files.array_file import read_array, write_array
from ..files.json_file import read_json, write_json
from .parameters import FlatParameters, Slot

WEIGHTS = "weights.npy"


def write_weights(folder: Path, model: Model, parameters: FlatParameters) -> None:
    """Write ``weights.npy`` and ``layout.json``."""
    vectors: Any = map(model.ops.to_numpy, (parameters.values, parameters.frozen))
    vector = np.concatenate(list(vectors))
    write_array(folder / WEIGHTS, vector)
    nodes = [
        {"name": node.name, "dims": {dim: node.maybe_get_dim(dim) for dim in node.dim_names}}
        for node in model.walk()
    ]
    checksum = hashlib.sha256(vector.data).hexdigest()
    layout = {"sha256": checksum, "nodes": nodes, "parameters": _slots(parameters)}
    write_json(folder / "layout.json", layout)


def restore_dimensions(folder: Path, model: Model) -> None:
    """Set the dimensions that were inferred from data when the model was trained.

    RAISES (ModelError): If the file is damaged, or describes the nodes of another model.
    """
    path = folder / "layout.json"
    saved: Any = read_json(path).get("nodes")
    nodes = list(model.walk())
    try:
        if [facts["name"] for facts in saved] != [node.name for node in nodes]:
            raise ModelError(
                f"{path}  describes another model than config.cfg builds. Load it with the "
                "version of thincdialog and the --code it was trained with."
            )
        for node, facts in zip(nodes, saved):
            for name, size in facts["dims"].items():
                if size is None:
                    continue
                if not isinstance(size, int) or size < 0:
                    raise TypeError(f"{name} of {facts['name']} is not a size")
                if not node.has_dim(name):
                    node.set_dim(name, size)
                elif node.get_dim(name) != size:
                    raise ModelError(
                        f"{path}  describes another model than config.cfg builds: the layer "
                        f"'{node.name}' has {name} = {size:,} there, and {node.get_dim(name):,} "
                        "here. Load it with the config and tokenizer it was saved with."
                    )
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{path}  is damaged ({error}). Save the model again.") from None


def read_weights(folder: Path, parameters: FlatParameters) -> None:
    """Read the weights into a model through its ``parameters``.

    RAISES (ModelError): If a file is missing, damaged, or belongs to another model.
    """
    layout = read_json(folder / "layout.json")
    if layout.get("parameters") != _slots(parameters):
        raise ModelError(
            f"{folder / 'layout.json'}  has other parameters than the model of config.cfg. "
            "Load it with the version of thincdialog and the --code it was trained with."
        )
    parameters.load(read_vector(folder, layout))


def read_slots(folder: Path, n_floats: int) -> List[Slot]:
    """Return the position of each parameter of a saved model in its weights.

    n_floats (int): Number of floats in the weights.
    RAISES (ModelError): If layout.json is missing or damaged, or does not match the weights.
    """
    path = folder / "layout.json"
    try:
        slots = [_slot(facts, n_floats) for facts in read_json(path)["parameters"]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error)[:200].split())
        raise ModelError(f"{path}  is damaged ({reason}). Save the model again.") from None
    return slots


def _slot(facts: Mapping[str, Any], n_floats: int) -> Slot:
    slot = Slot(facts["node"], str(facts["name"]), tuple(facts["shape"]), facts["offset"])
    if not all(isinstance(n, int) and n >= 0 for n in (slot.node, slot.offset, *slot.shape)):
        raise ValueError(f"{facts['name']} has a size that is not a number")
    if slot.offset + slot.size > n_floats:
        raise ValueError(f"{facts['name']} lies outside of the weights")
    return slot


def read_vector(folder: Path, layout: Mapping[str, Any]) -> Any:
    """Return all weights of a saved model.

    layout (Mapping[str, Any]): Content of ``layout.json``.
    RETURNS (Floats1d): Array on the CPU.
    RAISES (ModelError): If the file is missing or damaged.
    """
    path = folder / WEIGHTS
    vector: Any = read_array(path)
    if vector.dtype != np.float32 or vector.ndim != 1:
        raise ModelError(
            f"{path}  holds {vector.dtype} {vector.shape}, expected float32 of one dimension. "
            "It belongs to another model."
        )
    if hashlib.sha256(memoryview(vector)).hexdigest() != layout.get("sha256"):
        text = "its checksum is not the one in layout.json. Save the model again."
        raise ModelError(f"{path}  is damaged: {text}")
    if not np.isfinite(vector).all():
        text = "numbers that are not finite, so the model cannot be used. Train it again."
        raise ModelError(f"{path}  holds {text}")
    return vector


def _slots(parameters: FlatParameters) -> List[Dict[str, Any]]:
    return [
        {"node": slot.node, "name": slot.name, "shape": list(slot.shape), "offset": slot.offset}
        for slot in parameters.slots
    ]
