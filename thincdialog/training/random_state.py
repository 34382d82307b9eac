"""The global random generators of Python and NumPy, from which custom code may draw."""

import random
from typing import Any, Dict, Mapping

import numpy


def random_state() -> Dict[str, Any]:
    """Return the states of both generators, as JSON values."""
    version, numbers, gauss = random.getstate()
    name, key, position, has_gauss, cached = numpy.random.get_state()
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [name, numpy.asarray(key).tolist(), position, has_gauss, cached],
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Restore states from ``random_state``."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, key, *rest = state["numpy"]
    numpy.random.set_state((name, numpy.array(key, dtype=numpy.uint32), *rest))
