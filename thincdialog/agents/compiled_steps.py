"""What the agents have in common whose training step is one compiled kernel."""

import math
from typing import Any, Tuple

import numpy as np
from thinc.api import Optimizer

from ..errors import ConfigError, MissingPackageError, Problem
from ..examples.batch import Batch
from ..ops.compiled import load_kernels
from ..ops.rows_apart import RowsApart, Tokens
from ..optimizers.row_sparse import RowSparseOptimizer
from ..optimizers.sparse_sgd import SparseSGD
from ..optimizers.state import KEY
from ..protocol import NO_STEP, StepReport
from ..teachers import Teacher
from .model_agent import ModelAgent
from .tally import not_finite


class CompiledSteps(ModelAgent):
    """Comes before the agent that it makes faster: ``learn`` packs a batch for the kernel and
    keeps it (``keep``), ``update`` learns from all that were kept, each example by a step of
    its own. A subclass says how a kernel learns from a pack.

    kernels (str): Family of ``ops/kernels``.
    optimizers (Tuple[type, ...]): Those whose step the kernel can make; the one of the
        example in errors comes first.
    rows_apart (RowsApart): Of a replica, which does not learn alone, copies of rows; else
        none.
    """

    has_gradient = False
    kernels = ""
    optimizers: Tuple[type, ...] = ()
    rows_apart = RowsApart(0)

    def learn_pack(
        self, packed: Any, optimizer: RowSparseOptimizer, losses: np.ndarray
    ) -> Tuple[int, float]:
        """Learn from a pack, in place.

        packed (Any): What was kept.
        optimizer (RowSparseOptimizer): One of ``optimizers``, without L2.
        losses (Floats1d): Of each example; to be written.
        RETURNS (Tuple[int, float]): Examples trained on, fewer if a loss is not finite,
            and the sum of their gradients' squared norms.
        """
        raise NotImplementedError

    def replica(self) -> Any:
        replica = super().replica()
        replica.rows_apart = RowsApart()
        return replica

    def check_packages(self) -> None:
        """See that the kernels can be had.

        RAISES (MissingPackageError): If not.
        """
        try:
            load_kernels(self.kernels)
        except MissingPackageError:
            raise MissingPackageError("numba", "fast", f"[agent] {self.id}") from None

    def survey(self, train: Teacher) -> None:
        # Before any data is read.
        self.check_packages()
        if self.model.ops.device_type != "cpu":
            text = f"[agent] {self.id} learns on the CPU only"
            raise ConfigError([Problem("", text, "set gpu_id = -1 in [system]")])
        super().survey(train)

    @property
    def generator(self) -> np.random.Generator:
        """For what is drawn; ``begin_microbatch`` seeds it."""
        ops: Any = self.model.ops
        return ops.generator

    def tokens(self, table: str, rows: np.ndarray, uses: int = 1) -> Tokens:
        """Rows of a table of embeddings that a pack needs.

        table (str): Name of the model's reference to it.
        uses (int): How often it needs each.
        """
        node = self.model.get_ref(table)
        return Tokens(self.parameters.offset_of(node, "E"), rows, uses)

    def keep(self, packed: Any, batch: Batch, n_tokens: int) -> None:
        """Keep a batch till ``update``."""
        self.text.is_compiled = True  # Who learns has the kernels.
        self.tally.add_batch(batch)
        self.tally.packs.append((packed, len(batch.rows)))
        for name in ("tokens", "cells"):
            self.tally.counts[name] += n_tokens

    def begin_microbatch(self, seed: int, step: int, number: int) -> None:
        ops: Any = self.model.ops
        ops.seed(seed, step, number)

    def update(self, optimizer: Optimizer) -> StepReport:
        """Learn from the examples kept, one after another, with the optimizer's learning
        rate of this step.

        RETURNS (StepReport): Its norm is the root of the mean of the examples' squared
            gradient norms, before clipping; a row counts as often as the example has it.
        RAISES (ConfigError): If the optimizer is not one that the kernel knows.
        RAISES (TrainingError): If an example's loss is not finite; the weights are as
            those before it left them.
        """
        if not self.tally.examples:
            self.reset_metrics()
            return NO_STEP
        self.check_optimizer(optimizer)
        known: Any = optimizer
        loss, square = self._learn_packs(known)
        n_examples = self.tally.examples
        self.tally.add_losses(loss, n_examples)
        self.weights_changed()
        values = self.parameters.values
        # No part of the weights is left to change: this counts the step, for averages too.
        known.update_parts(KEY, values, values, [])
        known.step_schedules()
        return self.tally.close_step(math.sqrt(square / n_examples))

    def gathered_loss(self) -> float:
        loss, _ = self._learn_packs(SparseSGD(0.0))
        return loss / self.tally.examples

    def _learn_packs(self, optimizer: RowSparseOptimizer) -> Tuple[float, float]:
        """The sum of the losses of what is kept, and of the gradients' squared norms."""
        loss, square, n_before = 0.0, 0.0, 0
        for packed, n_examples in self.tally.packs:
            losses = np.zeros(n_examples, dtype="f")
            n_learnt, of_pack = self.learn_pack(packed, optimizer, losses)
            if n_learnt < n_examples:
                raise not_finite("loss", [self.tally.ids[n_before + n_learnt]])
            n_before += n_learnt
            loss += float(losses.sum(dtype="d"))
            square += of_pack
        return loss, square

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
