"""The vectors through which a worker exchanges the weights and gradients of its model."""

from typing import Any

from thinc.util import is_numpy_array

from ...models.gradient_sum import dense_slices
from ...ops.alignment import aligned_zeros
from ...ops.choice import get_dialog_ops
from ...protocol import Learner
from ...training.experiment import Experiment
from .shard import Gradient


class HostVectors:
    """Hold the weights and gradients of a model in vectors on the host, where the optimizer makes
    its steps. A model on the CPU works in these vectors. A model on a GPU has copies, so that
    workers with GPUs exchange data in the same way as workers without.

    experiment (Experiment): The worker's experiment.
    ops (Ops): Ops for these vectors.
    weights (Floats1d): All parameters.
    gradients (Floats1d): Gradient of all parameters outside of tables.
    """

    weights: Any
    gradients: Any

    def __init__(self, experiment: Experiment):
        self.learner: Learner = experiment.learner
        self.parameters: Any = self.learner.parameters  # type: ignore[attr-defined]
        self.ops: Any = experiment.ops
        self._is_copied = not is_numpy_array(self.learner.weights)
        if self._is_copied:
            self.ops = get_dialog_ops(-1, experiment.checked.interpolated["system"]["ops"])

    def use(self, weights: Any, gradients: Any = None) -> None:
        """Use these vectors from now on.

        weights (Floats1d): Current values of all parameters.
        gradients (Optional[Floats1d]): Zeros, as long as ``weights``; None to make them.
        """
        self.weights = weights
        self.gradients = aligned_zeros(len(weights)) if gradients is None else gradients
        if not self._is_copied:
            self.learner.use_weights(weights)
            self.parameters.move_gradients(self.gradients)
        self.weights_changed()

    def weights_changed(self) -> None:
        """Make the model use the current values of ``weights``."""
        if self._is_copied:
            self.learner.weights.set(self.weights)
        self.learner.weights_changed()

    def take(self) -> Gradient:
        """Return the gradient that the model has computed, and set the gradients of the model's
        tables to zero. The dense parts are in ``gradients``; set them to zero before the model
        computes the next gradient."""
        tables = self.parameters.take_rows()
        if self._is_copied:
            for now in dense_slices(self.parameters.segments):
                computed = self.parameters.dense_gradients[now]
                computed.get(out=self.gradients[now])
                computed.fill(0)
            tables = [(rows, values.get()) for rows, values in tables]
        return Gradient(self.gradients, tables)
