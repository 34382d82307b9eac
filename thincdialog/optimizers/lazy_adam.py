"""Adam that updates only the rows of an embedding table that the batch used."""

from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from thinc.api import Optimizer
from thinc.optimizers import ADAM_DEFAULTS, FloatOrSeq
from thinc.types import Floats1d, Ints1d
from thinc.util import get_array_module, is_numpy_array

from ..registry import registry

# Floats a block: what Adam reads and writes of it stays in a core's cache.
_BLOCK_FLOATS = 32768


class Part(NamedTuple):
    """A stretch of the flat vectors that an update touches.

    start (int): Where it begins.
    stop (int): Where it ends (exclusive).
    width (int): Floats in a row, if it is a table of rows; 0 if it is not.
    rows (Optional[Ints1d]): Rows of the table that have a gradient; None for all of it.
    """

    start: int
    stop: int
    width: int = 0
    rows: Optional[Ints1d] = None

    def view(self, vector: Floats1d) -> Any:
        """This stretch of a flat vector: 1-d, or (n_rows, width) if it is a table."""
        stretch = vector[self.start : self.stop]
        return stretch if self.rows is None else stretch.reshape((-1, self.width))

    def blocks(self, view: Any) -> Iterator[Any]:
        """Indices into ``view`` (slices, or row numbers) that cover what has a gradient:
        cache-sized pieces on the CPU, one piece on a GPU."""
        n = view.shape[0] if self.rows is None else self.rows.shape[0]
        size = _BLOCK_FLOATS if self.rows is None else max(1, _BLOCK_FLOATS // self.width)
        if not is_numpy_array(view):
            size = max(1, n)
        for start in range(0, n, size):
            index = slice(start, min(n, start + size))
            yield index if self.rows is None else self.rows[index]


class LazyAdam(Optimizer):
    """Adam whose state and weights stay as they are for table rows without a gradient.

    Called with a whole vector it is Thinc's Adam. ``update_parts`` is the lazy step:
    in tables, only the given rows are read and written, and only their moments decay
    (as in PyTorch's SparseAdam; the bias correction counts all steps). Weight decay,
    too, reaches a row only in steps that use it. Averages of the weights are taken
    every ``average_every`` steps, with the decay of that many steps.
    """

    def __init__(self, learn_rate: FloatOrSeq, *, average_every: int = 8, **settings: Any):
        super().__init__(learn_rate, **settings)
        if average_every < 1:
            raise ValueError(f"average_every is {average_every}, but must be 1 or more (steps)")
        self.average_every = average_every

    def update_parts(
        self,
        key: Tuple[int, str],
        values: Floats1d,
        gradients: Floats1d,
        parts: Sequence[Part],
        *,
        scale: float = 1.0,
    ) -> None:
        """One step. Changes values in place, leaves the gradients as they are.

        key (Tuple[int, str]): Under which the state is kept.
        values (Floats1d): All parameters, shape (n,), float32.
        gradients (Floats1d): Their gradients, shape (n,), float32.
        parts (Sequence[Part]): What has a gradient; nothing else is touched.
        scale (float): The gradients are multiplied by this first; clipping by the
            global norm is the caller's part of it (see ``clip_scale``).
        """
        xp = get_array_module(values)
        if key not in self.mom1:
            self.mom1[key] = xp.zeros_like(values)
            self.mom2[key] = xp.zeros_like(values)
        self.nr_update[key] += 1
        n_updates = self.nr_update[key]
        state: List[Any] = [values, gradients, self.mom1[key], self.mom2[key]]
        fix = (1.0 - self.b2**n_updates) ** 0.5 / (1.0 - self.b1**n_updates)
        for part in parts:
            views = [part.view(array) for array in state]
            for index in part.blocks(views[0]):
                block = [view[index] for view in views]  # copies if index is an array
                self._adam_block(xp, block, scale, self.learn_rate * fix)
                if part.rows is not None:
                    for view, changed in zip(views[:1] + views[2:], block[:1] + block[2:]):
                        view[index] = changed
        if self.averages is not None and n_updates % self.average_every == 0:
            self._update_averages(key, values, n_updates)

    def clip_scale(self, norm: float) -> float:
        """The factor that brings a gradient of this global norm down to ``grad_clip``."""
        if not self.grad_clip or norm <= self.grad_clip:
            return 1.0
        return self.grad_clip / norm

    def _adam_block(self, xp: Any, block: List[Any], scale: float, rate: float) -> None:
        W, dW, mom1, mom2 = block
        dW = dW * xp.float32(scale)
        if self.L2 and not self.L2_is_weight_decay:
            dW += xp.float32(self.L2) * W
        mom1 *= xp.float32(self.b1)
        mom1 += xp.float32(1 - self.b1) * dW
        dW *= dW
        dW *= xp.float32(1 - self.b2)
        mom2 *= xp.float32(self.b2)
        mom2 += dW
        step = xp.sqrt(mom2, out=dW)
        step += xp.float32(self.eps)
        xp.divide(mom1, step, out=step)
        step *= xp.float32(rate)
        W -= step
        if self.L2 and self.L2_is_weight_decay:
            W *= xp.float32(1 - self.learn_rate * self.L2)

    def _update_averages(self, key: Tuple[int, str], values: Floats1d, n_updates: int) -> None:
        assert self.averages is not None
        if key not in self.averages:
            self.averages[key] = values.copy()
            return
        # Thinc's decay, for the steps since the last time.
        kept = min((1.0 + n_updates) / (10.0 + n_updates), 0.9999) ** self.average_every
        average, share = self.averages[key], get_array_module(values).float32(1 - kept)
        # Blocks that stay in the CPU's cache; a GPU takes everything at once.
        size = _BLOCK_FLOATS if is_numpy_array(values) else values.shape[0]
        for start in range(0, values.shape[0], size):
            index = slice(start, start + size)
            average[index] += share * (values[index] - average[index])


@registry.optimizers("thincdialog.LazyAdam.v1")
def configure_lazy_adam(
    learn_rate: FloatOrSeq = ADAM_DEFAULTS["learn_rate"],
    *,
    beta1: FloatOrSeq = ADAM_DEFAULTS["beta1"],
    beta2: FloatOrSeq = ADAM_DEFAULTS["beta2"],
    eps: FloatOrSeq = ADAM_DEFAULTS["eps"],
    L2: FloatOrSeq = ADAM_DEFAULTS["L2"],
    L2_is_weight_decay: bool = True,
    grad_clip: FloatOrSeq = ADAM_DEFAULTS["grad_clip"],
    use_averages: bool = False,
    average_every: int = 8,
) -> Optimizer:
    """Adam for models with embedding tables: a step costs the rows that the batch used.

    learn_rate (float or schedule): Step size.
    beta1 (float): Decay of the first moment, per step (for a table row: per use).
    beta2 (float): Decay of the second moment, likewise.
    eps (float): Added to the root of the second moment.
    L2 (float): Weight decay; in tables only for the rows used.
    L2_is_weight_decay (bool): Decay the weights (AdamW), not the gradient.
    grad_clip (float): Largest norm of the whole gradient; 0 for no limit.
    use_averages (bool): Keep a moving average of the weights.
    average_every (int): Steps between two updates of the average, 1 or more.
    RETURNS (Optimizer): For ``FlatParameters.update``.
    SOURCE: Kingma and Ba 2015, https://arxiv.org/abs/1412.6980; lazy rows as in
        torch.optim.SparseAdam
    """
    return LazyAdam(
        learn_rate,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        L2=L2,
        L2_is_weight_decay=L2_is_weight_decay,
        grad_clip=grad_clip,
        use_averages=use_averages,
        average_every=average_every,
    )
