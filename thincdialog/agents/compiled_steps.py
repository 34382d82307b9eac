"""The common base of agents whose training step is one compiled kernel."""

import math
from typing import Any, Tuple

import numpy as np
from thinc.api import Model, Optimizer

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
    """Train an agent with a compiled kernel. This class precedes the agent's class in the list of
    bases. ``learn`` packs a batch for the kernel and keeps it (``keep``); ``update`` trains on all
    packs, with a separate step for each example. A subclass defines ``learn_pack``.

    kernels (str): Name of a family of kernels in ``ops/kernels``.
    optimizers (Tuple[type, ...]): Optimizers whose step the kernel implements; error messages name
        them in this order.
    rows_apart (RowsApart): In a replica, which trains at the same time as others, its copies of
        frequent rows; otherwise no copies.
    """

    has_gradient = False
    kernels = ""
    optimizers: Tuple[type, ...] = ()
    rows_apart = RowsApart(0)

    def learn_pack(
        self, packed: Any, optimizer: RowSparseOptimizer, losses: np.ndarray
    ) -> Tuple[int, float]:
        """Train on a pack, in place.

        packed (Any): The first argument of ``keep``.
        optimizer (RowSparseOptimizer): One of ``optimizers``, without L2.
        losses (Floats1d): Array for the loss of each example, which this method fills.
        RETURNS (Tuple[int, float]): Number of examples trained on, which is lower if a loss is not
            finite, and the sum of their squared gradient norms.
        """
        raise NotImplementedError

    def check_model(self, model: Model, name: str, *refs: str) -> None:
        """Check that the kernel can train the model, which needs these references.

        RAISES (ValueError): If the kernel cannot train the model.
        """
        if not all(map(model.has_ref, refs)):
            text = f"[agent.model] is '{model.name}', but this agent trains only"
            raise ValueError(f'{text} @models = "{name}"')

    def replica(self) -> Any:
        replica = super().replica()
        replica.rows_apart = RowsApart()
        return replica

    def check_packages(self) -> None:
        """Check that the kernels can be loaded.

        RAISES (MissingPackageError): If a package that the kernels need is not installed.
        """
        try:
            load_kernels(self.kernels)
        except MissingPackageError:
            raise MissingPackageError("numba", "fast", f"[agent] {self.id}") from None

    def survey(self, train: Teacher) -> None:
        # Check this before reading any data.
        self.check_packages()
        if self.model.ops.device_type != "cpu":
            text = f"[agent] {self.id} trains on the CPU only"
            raise ConfigError([Problem("", text, "set gpu_id = -1 in [system]")])
        super().survey(train)

    @property
    def generator(self) -> np.random.Generator:
        """Generator of random draws, which ``begin_microbatch`` seeds."""
        ops: Any = self.model.ops
        return ops.generator

    def tokens(self, table: str, rows: np.ndarray, uses: int = 1) -> Tokens:
        """Describe the rows of an embedding table that a pack needs.

        table (str): Name of the model's reference to the table.
        rows (np.ndarray): Row of each token in the table.
        uses (int): Approximate number of times that each row is used.
        """
        node = self.model.get_ref(table)
        return Tokens(self.parameters.offset_of(node, "E"), rows, uses)

    def keep(self, packed: Any, batch: Batch, n_tokens: int) -> None:
        """Keep a batch until ``update``."""
        self.tally.add_batch(batch)
        self.tally.packs.append((packed, len(batch.rows)))
        for name in ("tokens", "cells"):
            self.tally.counts[name] += n_tokens

    def begin_microbatch(self, seed: int, step: int, number: int) -> None:
        ops: Any = self.model.ops
        ops.seed(seed, step, number)

    def update(self, optimizer: Optimizer) -> StepReport:
        """Train on the kept examples one after another, with the optimizer's current learning rate.

        RETURNS (StepReport): The report. Its gradient norm is the root of the mean of the examples'
            squared gradient norms before clipping; a row that an example has several times counts
            as often.
        RAISES (ConfigError): If the kernel does not implement the optimizer.
        RAISES (TrainingError): If the loss of an example is not finite. The examples before it have
            already changed the weights.
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
        # The kernel has changed the weights. With an empty list of parts, this only counts the
        # step, which averages need.
        known.update_parts(KEY, values, values, [])
        known.step_schedules()
        return self.tally.close_step(math.sqrt(square / n_examples))

    def gathered_loss(self) -> float:
        loss, _ = self._learn_packs(SparseSGD(0.0))
        return loss / self.tally.examples

    def _learn_packs(self, optimizer: RowSparseOptimizer) -> Tuple[float, float]:
        """Return the sum of the losses of the kept examples, and the sum of their squared gradient
        norms."""
        loss, square, n_before = 0.0, 0.0, 0
        for packed, n_examples in self.tally.packs:
            losses = np.zeros(n_examples, dtype="f")
            n_trained, of_pack = self.learn_pack(packed, optimizer, losses)
            if n_trained < n_examples:
                raise not_finite("loss", [self.tally.ids[n_before + n_trained]])
            n_before += n_trained
            loss += float(losses.sum(dtype="d"))
            square += of_pack
        return loss, square

    def check_optimizer(self, optimizer: Any) -> None:
        """Check that the kernel implements the optimizer.

        RAISES (ConfigError): If the kernel does not implement the optimizer.
        """
        names = " or ".join(f'"thincdialog.{each.__name__}.v1"' for each in self.optimizers)
        problem = f"is {type(optimizer).__name__}, which {self.id} cannot use"
        hint = f"set @optimizers = {names}"
        if isinstance(optimizer, self.optimizers):
            if not optimizer.L2:  # type: ignore[attr-defined]
                return
            l2 = optimizer.L2  # type: ignore[attr-defined]
            problem, hint = f"has L2 = {l2}, but {self.id} supports no decay", "set L2 = 0"
        raise ConfigError([Problem("", f"[training.optimizer] {problem}", hint)])
