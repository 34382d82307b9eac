"""What the agents have in common whose training step is one compiled kernel."""

import math
from typing import Any, NamedTuple, Tuple

import numpy as np
from thinc.api import Optimizer

from ..errors import ConfigError, MissingPackageError, Problem
from ..messages import column
from ..metrics import AverageMetric
from ..models.parameters import KEY
from ..ops.compiled import load_kernels
from ..ops.rows_apart import RowsApart
from ..optimizers.row_sparse import RowSparseOptimizer
from ..optimizers.sparse_sgd import SparseSGD
from ..protocol import Observations
from ..teachers import Teacher
from .model_agent import ModelAgent
from .not_finite import not_finite


class CompiledSteps(ModelAgent):
    """Comes before the agent that it makes faster: ``train_batch`` packs a batch for the
    kernel and keeps it (``keep``), ``update`` learns from all that were kept, each example
    by a step of its own. A subclass says how a kernel learns from a pack.

    kernels (str): Family of ``ops/kernels``.
    optimizers (Tuple[type, ...]): Those whose step the kernel can make; the one of the
        example in errors comes first.
    rows_apart (RowsApart): Of a replica, which does not learn alone, copies of rows; else
        none.
    """

    kernels = ""
    optimizers: Tuple[type, ...] = ()
    rows_apart = RowsApart(0)
    # Of the step to come; replaced, never changed, so that no copy shares it.
    _packed: Tuple[Any, ...] = ()

    def learn_pack(
        self, packed: Any, optimizer: RowSparseOptimizer, losses: np.ndarray
    ) -> Tuple[int, float]:
        """Learn from a pack, in place.

        packed (Any): What was kept.
        optimizer (RowSparseOptimizer): One of ``optimizers``, without L2.
        losses (Floats1d): Of each example; to be written.
        RETURNS (Tuple[int, float]): Examples learnt from, fewer if a loss is not finite,
            and the sum of their gradients' squared norms.
        """
        raise NotImplementedError

    def replica(self) -> Any:
        replica = super().replica()
        replica._packed = ()
        replica.rows_apart = RowsApart()
        return replica

    def check_kernels(self) -> None:
        """See that the kernels can be had.

        RAISES (MissingPackageError): If not.
        """
        try:
            load_kernels(self.kernels)
        except MissingPackageError:
            raise MissingPackageError("numba", "fast", f"[agent] {self.id}") from None

    def initialize(self, train: Teacher, **options: Any) -> None:
        self.check_kernels()  # Before any data is read.
        if self.model.ops.device_type != "cpu":
            text = f"[agent] {self.id} learns on the CPU only"
            raise ConfigError([Problem("", text, "set gpu_id = -1 in [system]")])
        super().initialize(train, **options)

    def keep(self, packed: Any, observations: Observations) -> None:
        """Keep a batch till ``update``."""
        self.text.is_compiled = True  # Who learns has the kernels.
        before = self._packed if self.counters.examples else ()  # Or nobody waits for them.
        self._packed = (*before, Kept(packed, len(observations)))
        self.counters.read(column(observations, "id"))

    def update(self, optimizer: Optimizer) -> float:
        """Learn from the examples kept, one after another, with the optimizer's learning
        rate of this step.

        RETURNS (float): Root of the mean of the examples' squared gradient norms, before
            clipping; a row counts as often as the example has it.
        RAISES (ConfigError): If the optimizer is not one that the kernel knows.
        RAISES (TrainingError): If an example's loss is not finite; the weights are as
            those before it left them.
        """
        self.check_optimizer(optimizer)
        known: Any = optimizer
        packs, self._packed = self._packed, ()
        loss, n_before, square = 0.0, 0, 0.0
        for packed, n_examples in packs:
            losses = np.zeros(n_examples, dtype="f")
            n_learnt, of_pack = self.learn_pack(packed, known, losses)
            if n_learnt < n_examples:
                raise not_finite("loss", [self.counters.ids[n_before + n_learnt]])
            n_before += n_learnt
            loss += float(losses.sum(dtype="d"))
            square += of_pack
        self.counters.loss = self.counters.loss + AverageMetric(loss, n_before)
        self.counters.updated()
        self.forget_computed()
        values = self.parameters.values
        # No part of the weights is left to change: this counts the step, for averages too.
        known.update_parts(KEY, values, values, [])
        known.step_schedules()
        return math.sqrt(square / max(1, n_before))

    def kept_loss(self) -> float:
        """The mean loss of what is kept, with the weights as they are before its steps."""
        total, n_examples = 0.0, 0
        for packed, n in self._packed:
            losses = np.zeros(n, dtype="f")
            n_learnt, _ = self.learn_pack(packed, SparseSGD(0.0), losses)
            if n_learnt < n:
                raise not_finite("loss", [self.counters.ids[n_examples + n_learnt]])
            total += float(losses.sum(dtype="d"))
            n_examples += n
        return total / n_examples

    def check_optimizer(self, optimizer: Any) -> None:
        """See that the kernel can do what the optimizer does."""
        names = " or ".join(f'"thincdialog.{each.__name__}.v1"' for each in self.optimizers)
        problem = f"is {type(optimizer).__name__}, which {self.id} cannot use"
        hint = f"set @optimizers = {names}"
        if isinstance(optimizer, self.optimizers):
            if not optimizer.L2:  # type: ignore[attr-defined]
                return
            l2 = optimizer.L2  # type: ignore[attr-defined]
            problem, hint = f"has L2 = {l2}, but {self.id} knows no decay", "set L2 = 0"
        raise ConfigError([Problem("", f"[training.optimizer] {problem}", hint)])


class Kept(NamedTuple):
    """A batch that waits for ``update``."""

    packed: Any
    n_examples: int
