"""GPU ops: Thinc's, with seeded dropout."""

from typing import Any, Optional, cast

import numpy
from thinc.api import CupyOps
from thinc.types import DeviceTypes, FloatsXd, Shape

from ..registry import registry
from .dialog_numpy_ops import stream_seed
from .exact_products import ExactProducts


@registry.ops("thincdialog_cupy")
class DialogCupyOps(ExactProducts, CupyOps):
    """Thinc's CupyOps with products that can be exact (``exact_products``) and dropout
    masks drawn from the ops' own generator, which ``seed`` sets. Needs CuPy and a GPU
    once it is made.

    device_type (DeviceTypes): "gpu".
    device_id (int): Number of the GPU, from 0.
    """

    name = "thincdialog_cupy"

    def __init__(self, device_type: DeviceTypes = "gpu", device_id: int = 0, **kwargs: Any) -> None:
        super().__init__(device_type, device_id, **kwargs)
        self.seed(0)

    def seed(self, seed: int, step: int = 0, microbatch: int = 0) -> None:
        """Start the random draws of one microbatch (see ``stream_seed``)."""
        state = stream_seed(seed, step, microbatch).generate_state(1, numpy.uint64)
        random = self.xp.random
        self.generator = random.Generator(random.Philox4x3210(seed=int(state[0])))

    def get_dropout_mask(self, shape: Shape, drop: Optional[float]) -> FloatsXd:
        """Factors for dropout: 0 with probability ``drop``, else 1 / (1 - drop).

        shape (Shape): Shape of the mask.
        drop (Optional[float]): Probability of zeroing a cell; None or 0 for none.
        RETURNS (FloatsXd): Shape ``shape``, float32.
        """
        if drop is None or drop <= 0:
            return cast(FloatsXd, self.xp.ones(shape, dtype="f"))
        if drop >= 1:
            return cast(FloatsXd, self.xp.zeros(shape, dtype="f"))
        draws = self.generator.random(size=shape, dtype=numpy.float32)
        return cast(FloatsXd, (draws >= drop) * numpy.float32(1 / (1 - drop)))
