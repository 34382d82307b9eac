"""The base class of the runners on a Ray cluster."""

from importlib.util import find_spec
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from thinc.api import get_array_module, to_numpy

from ...errors import ConfigError, MissingPackageError, Problem
from ...evaluation.evaluate_agent import evaluate_agent
from ...ops.alignment import aligned_zeros
from ...optimizers.scored_schedules import schedule_states
from ...optimizers.shared_state import has_known_steps, use_state
from ...optimizers.state import KEY, arrays_of, optimizer_state
from ...protocol import Learner
from ...teachers import Teacher
from ...training.experiment import Experiment
from ...training.interruption import Interruption, Note
from ...training.runner import Runner
from ..shared_arrays import Arrays, Layout, SharedMemory, shared_arrays
from .ray_cluster import NEED
from .workers import Died, Workers

# Settings with which the result is bit for bit the same, if all workers have the same kind of
# processor. ``microbatches`` is listed because the runners compare the actual number themselves.
HARMLESS = (
    "num_workers", "microbatches", "address", "num_cpus", "num_gpus_per_worker",
    "object_store_memory", "plane", "snapshot_every", "max_restarts",
)  # fmt: skip


class RayRunner(Runner):
    """Base of the runners of both modes. It checks the settings, and holds the weights and the
    optimizer as the driver sees them. For the settings, see ``build_ray``.

    n_microbatches (int): Number of microbatches in a step.
    n_restarts (int): Number of workers that were restarted.
    """

    harmless: Sequence[str] = HARMLESS
    experiment: Experiment
    learner: Learner
    # Between ``begin`` and ``end``: the workers in other processes, or the only one, in this one.
    workers: Any = None
    worker: Any = None

    def __init__(self, **settings: Any):
        self.settings = settings
        self.num_workers: int = settings["num_workers"]
        self.n_workers = max(1, self.num_workers)
        self.n_restarts = 0
        self.interruption = Interruption()
        self.note: Note = lambda line: None
        self._line = ""
        self._gpu_bytes = 0

    def problems(self, experiment: Experiment) -> List[Problem]:
        problems: List[Problem] = []
        checked = experiment.checked

        def refuse(text: str, hint: str, *where: str) -> None:
            problems.append(Problem(checked.where(*where), text, hint))

        if self.num_workers and find_spec("ray") is None:
            missing = MissingPackageError("ray", "ray", NEED)
            refuse(str(missing), "or set num_workers = 0", "runner")
        if experiment.agent.learns and not experiment.learner.has_gradient:
            text = (
                f"[agent] '{experiment.agent.id}' trains on one example at a time: it has no "
                "gradient that [runner] workers could sum"
            )
            refuse(text, 'set @runners = "thincdialog.Hogwild.v1"', "runner")
        if experiment.agent.learns and not has_known_steps(experiment.optimizer):
            text = "[training.optimizer] is a custom optimizer, whose state workers cannot share"
            refuse(text, 'choose another optimizer, such as "Adam.v1"', "training", "optimizer")
        gpu_id = checked.interpolated["system"]["gpu_id"]
        if self.num_workers and gpu_id >= 0:
            text = f"[runner] workers get their GPUs from Ray, but gpu_id = {gpu_id} names one"
            refuse(text, "set num_gpus_per_worker = 1 and --gpu-id -1", "system", "gpu_id")
        if self.settings["microbatches"] and experiment.training["accumulate_gradient"] > 1:
            text = "[runner] microbatches and [training] accumulate_gradient set the same number"
            refuse(text, "set only one of them", "runner", "microbatches")
        return problems

    def begin(
        self, experiment: Experiment, teacher: Teacher, interruption: Interruption, note: Note
    ) -> None:
        self.experiment, self.learner = experiment, experiment.learner
        self.interruption, self.note = interruption, note
        default = experiment.training["accumulate_gradient"]
        if self.settings["mode"] == "sync":
            default *= self.n_workers
        self.n_microbatches: int = self.settings["microbatches"] or default
        self._sent_schedules = schedule_states(experiment.optimizer)
        if not self.num_workers:
            self._begin(teacher)
            return
        self.workers = Workers(self, teacher)
        with self.workers.ending_on_error():
            self._begin(teacher)

    def _begin(self, teacher: Teacher) -> None:
        """Make the only worker of the run, or wait for all workers to start, and connect them.

        teacher (Teacher): Teacher of the training data.
        """
        raise NotImplementedError

    def go_back(self, death: Died) -> str:
        """Go back to the last snapshot with the remaining workers, and return a description of the
        event for the user.

        RAISES (Died): If another worker dies meanwhile.
        """
        raise NotImplementedError

    def end(self) -> None:
        if self.workers is None:
            self.worker.walk.world.shutdown()
        else:
            self.workers.end()
            self.workers = None
        self._unshare_state()

    def evaluate(
        self, experiment: Experiment, teacher: Teacher, recorder: Any = None
    ) -> Dict[str, float]:
        agent, is_on_gpu = experiment.agent, experiment.ops.device_type != "cpu"
        if not self.num_workers or is_on_gpu or agent.replies_need_batch:
            return evaluate_agent(agent, teacher, experiment.make_evaluation_world, recorder)
        self.experiment = experiment
        if self.workers is not None:
            return self.workers.evaluate(teacher, recorder)
        workers = Workers(self, None)
        with workers.ending_on_error():
            workers.join(self.num_workers)
            scores = workers.evaluate(teacher, recorder)
        workers.end()
        return scores

    def share(self, layout: Layout) -> Optional[Arrays]:
        """Return arrays that all workers share from now on; None if they have to send each other
        their data.

        layout (Layout): Layout of the arrays.
        RAISES (ConfigError): If memory cannot be shared, although the settings require it.
        """
        plane, nodes = self.settings["plane"], {*self.workers.each("node")}
        nodes.add(self.workers.cluster.node)
        if plane != "store" and len(nodes) == 1:
            with shared_arrays(layout) as (memory, arrays):
                if self._open(memory):
                    return arrays
        if plane == "shm":
            reason = f"works on one machine only, but the run uses {len(nodes)}"
            if len(nodes) == 1:
                reason = "does not work: workers cannot open the memory of the run's process"
            text = f'[runner] plane = "shm" {reason}'
            raise ConfigError([Problem("", text, 'set "auto" or "store"')])
        self._open(None)
        return None

    def _open(self, memory: Optional[SharedMemory]) -> bool:
        """Make all workers use shared memory, or none, and return whether they can open it."""
        return all(self.workers.each("open", memory))

    # --- the optimizer of the run, which follows the steps of workers ----------------------

    def _send_schedule_states(self, restore: Callable[[Dict[str, Any]], Any]) -> None:
        """Send workers the states of schedules that evaluations have changed.

        restore (Callable[[Dict[str, Any]], Any]): Function that sends them (``schedule_states``).
        """
        states = schedule_states(self.experiment.optimizer)
        if states != self._sent_schedules:
            restore(states)
            self._sent_schedules = states

    def optimizer_state(self) -> Dict[str, Any]:
        """Return the state of the run's optimizer, without arrays, from which workers resume."""
        state, _ = optimizer_state(self.experiment.optimizer)
        return {**state, "kept": list(self.arrays())}

    def arrays(self) -> Dict[str, Any]:
        """Return the arrays that the run's optimizer has so far, by their names."""
        return arrays_of(self.experiment.optimizer, KEY)

    def _advance_optimizer(self, n_steps: int) -> None:
        """Advance the counts and schedules of the run's optimizer by the steps of workers."""
        optimizer = self.experiment.optimizer
        optimizer.nr_update[KEY] += n_steps
        for _ in range(n_steps):
            optimizer.step_schedules()

    def bind(self, arrays: Dict[str, Any], kept: Iterable[str]) -> None:
        """Make the run's optimizer use these arrays, or copies of them on the GPU of the run.

        arrays (Dict[str, Floats1d]): Arrays of workers, on the host, by name.
        kept (Iterable[str]): Names of the arrays to use.
        """
        asarray: Any = get_array_module(self.learner.weights).asarray
        used = {name: asarray(arrays[name]) for name in kept}
        use_state(self.experiment.optimizer, KEY, used)

    def snapshot(self) -> Dict[str, Any]:
        """Return a copy, on the host, of the weights and the optimizer state as this process sees
        them. Workers resume from it."""
        arrays = {name: to_numpy(array).copy() for name, array in self.arrays().items()}
        weights = to_numpy(self.learner.weights).copy()
        return {"weights": weights, "arrays": arrays, "state": self.optimizer_state()}

    def take_over(self, snapshot: Mapping[str, Any], own: Dict[str, Any]) -> None:
        """Copy weights and optimizer state from a snapshot into this process.

        snapshot (Mapping[str, Any]): A result of ``snapshot``.
        own (Dict[str, Floats1d]): Dictionary that receives copies of the optimizer's arrays.
        """
        weights: Any = self.learner.weights  # Perhaps on the GPU of the run.
        weights[:] = get_array_module(weights).asarray(snapshot["weights"])
        self.learner.weights_changed()
        for name, array in snapshot["arrays"].items():
            own[name] = aligned_zeros(len(array))
            own[name][:] = array
        self.bind(own, own)

    def _unshare_state(self) -> None:
        """Copy weights and optimizer state into memory that only this process uses."""
        weights = aligned_zeros(len(self.learner.weights), get_array_module(self.learner.weights))
        weights[:] = self.learner.weights
        self.learner.use_weights(weights)
        own = {name: array.copy() for name, array in self.arrays().items()}
        self.bind(own, own)

    # --- memory of GPUs -------------------------------------------------------------------

    def see_held(self, of_workers: Iterable[Optional[int]]) -> None:
        """Record the sizes of the memory pools of workers' GPUs, in bytes."""
        self._gpu_bytes = max([self._gpu_bytes, *(each or 0 for each in of_workers)])

    def gpu_bytes(self) -> Optional[int]:
        return self._gpu_bytes or None

    # --- the live line --------------------------------------------------------------------

    def status(self) -> str:
        return self._line

    def tell(self, rates: List[float], *more: str) -> None:
        """Update the status line.

        rates (List[float]): Examples per second of each worker.
        more (str): Further parts of the line.
        """
        shown = "+".join(f"{rate:,.0f}" for rate in rates)
        parts = [f"workers {shown}/s" if len(rates) > 1 else "", *more]
        if self.n_restarts:
            parts.append(f"{self.n_restarts} restarted")
        self._line = ", ".join(part for part in parts if part)
