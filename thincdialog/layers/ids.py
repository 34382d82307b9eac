"""Token ids and segments, which our layers read on the host."""

from typing import Tuple

import numpy
from thinc.types import Ragged

from ..ops.devices import on_host


def host_tokens(X: Ragged) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Ids and segments, int32, shape (n_tokens, 2); and tokens of each example, shape
    (n_examples,); both on the host."""
    return on_host(X.dataXd), on_host(X.lengths)


def no_gradient(X: Ragged) -> Ragged:
    """The gradient of ids: zeros of an array of their own, as a layer may add to them in place."""
    return Ragged(numpy.zeros_like(on_host(X.dataXd)), X.lengths)  # type: ignore[arg-type]
