"""The Hogwild runner: several workers update the same weights, without locks.

SOURCE: Niu, Recht, Re and Wright 2011, https://arxiv.org/abs/1106.5730
"""

import ctypes
import threading
from array import array
from contextlib import ExitStack, suppress
from typing import Any, Dict, List, Literal, Mapping, Optional

from threadpoolctl import threadpool_limits

from ..errors import ConfigError, Problem, ProtocolError
from ..evaluation.evaluate_agent import evaluate_agent
from ..formats.text_file import is_pipe
from ..loader.cores import n_cores
from ..optimizers.scored_schedules import schedule_states
from ..optimizers.shared_state import lay_out_state, settings_of, why_not_shared
from ..optimizers.state import KEY
from ..protocol import StepReport
from ..registry import registry
from ..teachers import Teacher
from ..training.experiment import Experiment
from ..training.interruption import Interruption, Note
from ..training.runner import Runner
from .alone import Alone
from .crew import Crew
from .hogwild_processes import make_process_worker, shared_with_processes
from .hogwild_world import with_threads
from .patience import LOOK_SECONDS
from .stale_steps import describe_stale
from .step_numbers import StepNumbers
from .worker import Worker
from .worker_process import worker_processes

# How long ``take`` waits for steps before the training loop checks the time again.
TAKE_SECONDS = 0.1
# Largest number of workers. More are a mistake: they would take hours to start.
MAX_WORKERS = 1024
# Number of a parameter of glibc's ``mallopt``.
M_ARENA_MAX = -8


@registry.runners("thincdialog.Hogwild.v1")
def build_hogwild(workers: int = 2, executor: Literal["thread", "process"] = "thread") -> Runner:
    """Train the same weights with several workers at once, without locks (CPU only). Each worker
    has its own world, with a copy of the agent and a share of the data.

    workers (int): Number of workers, 1 to 1024. At most one worker per CPU core makes steps at the
        same time. Choose learn_rate as for one worker: with more workers, Adam's steps are
        shortened automatically.
    executor (str): "thread": workers are threads of this process, which scale best with
        system.ops = "fast". "process": workers are processes, which also run Python code in
        parallel; each process loads the data.
    RAISES (ConfigError): If workers is out of range.
    """
    if not 1 <= workers <= MAX_WORKERS:
        text = f"'workers' of thincdialog.Hogwild.v1 is {workers}"
        raise ConfigError([Problem("", text, f"give 1 to {MAX_WORKERS:,}")])
    return Alone() if workers == 1 else Hogwild(workers, executor)


def _use_one_heap() -> None:
    """Make all threads allocate from the main thread's heap. glibc's heaps for other threads return
    each large array to the system, and a BiLSTM then spends up to a quarter of its time on new
    pages. C libraries without this call are left alone."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


class Hogwild(Runner):
    """Train with several workers that share the weights (see ``build_hogwild``). Each step uses the
    optimizer settings that the same step would use with one worker, except for the settings that
    ``stale_settings`` changes because gradients are stale.

    times (float): Time limits, passed to ``Crew``.
    crew (Crew): The workers.
    numbers (StepNumbers): Counter from which workers draw the numbers of their steps.
    """

    harmless = ("executor",)
    experiment: Experiment
    interruption: Optional[Interruption] = None
    crew: Crew
    numbers: StepNumbers

    def __init__(self, workers: int, executor: str, **times: float):
        self.n_workers, self.executor, self.times = workers, executor, times

    def problems(self, experiment: Experiment) -> List[Problem]:
        checked = experiment.checked
        problems: List[Problem] = []

        def refuse(text: str, hint: str, *where: str) -> None:
            problems.append(Problem(checked.where(*where), text, hint))

        alone = 'set @runners = "thincdialog.Alone.v1"'
        if checked.interpolated["system"]["gpu_id"] >= 0:
            text = "[runner] workers share CPU memory, but gpu_id asks for a GPU"
            hint = f'{alone}, or --gpu-id -1 (for several GPUs: "thincdialog.Ray.v1")'
            refuse(text, hint, "runner")
        if experiment.agent.learns and (reason := why_not_shared(experiment.optimizer)):
            hint = f'{alone}, or choose "Adam.v1" or "thincdialog.LazyAdam.v1"'
            refuse(f"[training.optimizer] {reason}", hint, "training", "optimizer")
        for name, task in experiment.tasks.items():
            is_streamed = checked.interpolated["tasks"][name].get("streaming")
            paths = task.files("train") if "train" in task.splits else []
            pipes = list(filter(is_pipe, paths))
            if pipes and (self.executor == "process" or is_streamed):
                often = "is not a file, but the [runner] workers read it more than once"
                hint = 'give a file, or set executor = "thread" and streaming = false'
                refuse(f"{pipes[0]} {often}", hint, "tasks", name, "train")
        return problems

    def begin(
        self, experiment: Experiment, teacher: Teacher, interruption: Interruption, note: Note
    ) -> None:
        self.experiment, self.interruption, self.note = experiment, interruption, note
        n, at_once = self.n_workers, min(self.n_workers, n_cores())
        settings = settings_of(experiment.optimizer)
        with ExitStack() as stack, ExitStack() as starting:
            workers: List[Any]
            if self.executor == "process":
                sharing = shared_with_processes(experiment, teacher, n, at_once)
                self.numbers, *arguments = starting.enter_context(sharing)
                processes = worker_processes(n, make_process_worker, *arguments)
                workers = stack.enter_context(processes)
            else:
                stack.enter_context(threadpool_limits(1, user_api="blas"))
                _use_one_heap()
                lay_out_state(experiment.optimizer, KEY, experiment.learner.weights)
                turns = threading.BoundedSemaphore(at_once)
                self.numbers = StepNumbers(array("q", [0, 0]), threading.Lock(), turns, at_once)
                workers = [
                    Worker(experiment, share, settings, self.numbers) for share in teacher.shares(n)
                ]
            self.crew = Crew(workers, self.numbers.stop, interruption, note, **self.times)
            stack.callback(self.crew.end)
            if self.executor == "process":
                self.crew.each("begin")
            self._stack = stack.pop_all()
        self._sent_schedules: Dict[str, Any] = {}
        # For each worker, whether it has finished its share.
        self.is_done = [True] * n
        # Number of the epoch that the next ``take`` begins; None if workers have begun it.
        self._begins: Optional[int] = None
        if at_once < n:
            few = f"{at_once} of {n} workers run at a time"
            note(f"[runner] {few}, because there are no more processors")
        if line := describe_stale(settings, at_once):
            note(line)

    def end(self) -> None:
        self._stack.close()

    def start_epoch(self, epoch: int) -> None:
        self._begins, self.is_done = epoch, [False] * self.n_workers

    def epoch_done(self) -> bool:
        return all(self.is_done) and not self.crew.busy

    def take(self, step: int, room: float) -> List[StepReport]:
        if self.crew.busy:
            self.numbers.end_at(step + room)
        else:
            self._send_schedule_states()
            self.numbers.begin(step, room)
            for worker, is_done in enumerate(self.is_done):
                if not is_done:
                    self.crew.ask(worker, "run", self._begins)
            self._begins = None
        return self._reports(TAKE_SECONDS)

    def _send_schedule_states(self) -> None:
        """Send workers the states of schedules that evaluations have changed."""
        states = schedule_states(self.experiment.optimizer)
        if states != self._sent_schedules:
            self.crew.each("restore_schedules", states)
            self._sent_schedules = states

    def settle(self) -> List[StepReport]:
        self.numbers.stop()
        reports: List[StepReport] = []
        while self.crew.busy:
            reports += self._reports(LOOK_SECONDS)
        return reports

    def _reports(self, seconds: float) -> List[StepReport]:
        """Return the reports of new steps, after advancing the run's optimizer by these steps.

        seconds (float): How long to wait for the first message.
        """
        optimizer = self.experiment.optimizer
        reports: List[StepReport] = []
        for message in self.crew.listen(seconds):
            if message.is_answer:
                self.is_done[message.worker] = message.value
            else:
                made, n_calls = message.value
                reports += made
                optimizer.nr_update[KEY] += n_calls
        for _ in reports:
            optimizer.step_schedules()
        return reports

    def evaluate(
        self, experiment: Experiment, teacher: Teacher, recorder: Any = None
    ) -> Dict[str, float]:
        # Evaluate with threads, each with a replica of the agent, even if processes make the steps.
        make_world = with_threads(experiment, self.n_workers, self.interruption)
        return evaluate_agent(experiment.agent, teacher, make_world, recorder)

    def state(self) -> Dict[str, Any]:
        if self._begins is not None:
            self.crew.each("start_epoch", self._begins)
            self._begins = None
        states = self.crew.each("state")
        if None in states:
            raise ProtocolError("The worlds of [runner] workers cannot be saved during an epoch.")
        return {"workers": states}

    def restore(self, state: Mapping[str, Any]) -> None:
        states = state.get("workers", [None])
        if len(states) != self.n_workers:
            text = f"[runner] workers is {self.n_workers}, but the saved run has {len(states)}"
            hint = f"set it to {len(states)}, or start from scratch"
            raise ConfigError([Problem("", text, hint)])
        self.is_done = self.crew.each("restore", states)
