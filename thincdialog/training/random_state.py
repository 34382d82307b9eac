"""The global generators of Python and NumPy, which code of users may draw from."""

import random
from typing import Any, Dict, Mapping

import numpy


def random_state() -> Dict[str, Any]:
    """Where both generators are, as JSON values."""
    version, numbers, gauss = random.getstate()
    name, key, position, has_gauss, cached = numpy.random.get_state()
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [name, numpy.asarray(key).tolist(), position, has_gauss, cached],
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Take back what ``random_state`` gave."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, key, *rest = state["numpy"]
    numpy.random.set_state((name, numpy.array(key, dtype=numpy.uint32), *rest))
