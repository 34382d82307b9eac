"""Unique, readable names for the nodes of a model."""

from collections import Counter
from typing import Dict, List, Set

from thinc.api import Model

# Maximum number of characters of a name. The name of a combinator lists those of all its layers.
_LONGEST = 32


def node_names(model: Model) -> List[str]:
    """Return a unique name for each node of ``model.walk()``.

    A name begins with the parts that the node belongs to, if the model has references to them
    ("context_encoder/linear"). If several nodes would have the same name, the second and later
    ones get a number.
    """
    parts: Dict[int, Set[str]] = {}
    _collect(model, "", parts)
    names: List[str] = []
    counts: Counter = Counter()
    for node in model.walk():
        own = node.name if len(node.name) <= _LONGEST else node.name[: _LONGEST - 3] + "..."
        where = "+".join(sorted(parts.get(id(node), {""}) - {""}))
        name = f"{where}/{own}" if where else own
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name} {counts[name]}")
    return names


def _collect(node: Model, part: str, parts: Dict[int, Set[str]]) -> None:
    known = parts.setdefault(id(node), set())
    if part in known:
        return
    known.add(part)
    for layer in node.layers:
        refs = [name for name in node.ref_names if node.maybe_get_ref(name) is layer]
        for inside in refs or [part]:
            _collect(layer, inside, parts)
