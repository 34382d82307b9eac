"""Run a few synchronous workers in threads of this process, with the same classes as on Ray."""

import threading
from typing import Any, Dict, List

import numpy
import pytest
from thinc.api import to_numpy

from thincdialog.optimizers.state import ARRAYS, KEY, optimizer_state
from thincdialog.runners.cluster.exchange import VALUES, Aborted, abort, fill
from thincdialog.runners.cluster.slots import Slots
from thincdialog.runners.cluster.sync_worker import SyncWorker, sync_layout
from thincdialog.runners.shared_arrays import open_arrays, private_arrays, shared_arrays
from thincdialog.training.experiment import Experiment


def made(text: str) -> Experiment:
    """Return an experiment with its initial weights."""
    experiment = Experiment.from_config(text)
    with experiment.working():
        teacher = experiment.training_split()
        experiment.agent.initialize(teacher, tokenizer=experiment.tokenizer, seed=experiment.seed)
    return experiment


class ThreadedWorkers:
    """Some workers, each with its own experiment.

    n_microbatches (int): Microbatches per step.
    plane (str): "shm", or "store" if workers send each other their results.
    """

    def __init__(self, text: str, n_workers: int, n_microbatches: int, plane: str = "shm"):
        self.workers: List[SyncWorker] = []
        for _ in range(n_workers):
            experiment = made(text)
            with experiment.working():
                self.workers.append(SyncWorker(experiment, experiment.training_split()))
        self.slots, self.plane = Slots(n_microbatches, n_workers), plane
        self.optimizer = made(text).optimizer
        self.step = 0
        learner: Any = self.workers[0].learner
        self.connect(to_numpy(learner.weights), {}, [])

    def connect(self, values: Any, arrays: Dict[str, Any], kept: List[str]) -> None:
        snapshot = {"weights": values.copy(), "arrays": arrays}
        state = {**optimizer_state(self.optimizer)[0], "kept": kept}
        layout = sync_layout(self.workers[0].segments, self.slots)
        with shared_arrays(layout) as (memory, self.shared):
            fill(self.shared, snapshot)
            for number, worker in enumerate(self.workers):
                own = open_arrays(memory) if self.plane == "shm" else private_arrays(layout)
                fill(own, snapshot)
                with worker.experiment.working():
                    worker.connect(number, self.slots, own, state)

    def resumed_by(self, others: "ThreadedWorkers") -> "ThreadedWorkers":
        """Let other workers continue at the position of these, and return them."""
        others.step, others.optimizer = self.step, self.optimizer
        others.connect(self.weights(), self.state(), list(self.state()))
        others.each("go_to", self.workers[0].place())
        return others

    def finish(self) -> None:
        """Make steps until the epoch is over."""
        while not self.run(5)[0].is_done:
            pass

    def each(self, call: str, *given: Any) -> List[Any]:
        """Call a method of all workers at the same time. Return the results.

        given (Any): Its arguments. A list holds the arguments of each worker.
        """
        answers: List[Any] = [None] * len(self.workers)

        def carry_out(number: int) -> None:
            try:
                own = given[0][number] if given and isinstance(given[0], list) else given
                answers[number] = getattr(self.workers[number], call)(*own)
            except BaseException as error:
                answers[number] = error
                self.give_up()

        threads = [threading.Thread(target=carry_out, args=(n,)) for n in range(len(self.workers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors:  # Aborted workers are not the cause.
            raise min(errors, key=lambda error: isinstance(error, Aborted))
        return answers

    def give_up(self) -> None:
        """Make workers stop waiting for each other."""
        for worker in self.workers:
            abort(worker.arrays)

    def run(self, n_steps: int) -> List[Any]:
        """Make some steps, or fewer at the end of the epoch. Return the results of the workers."""
        if self.plane == "shm" or len(self.workers) == 1:
            ran = self.each("run", self.step, n_steps)
        else:
            ran = self._exchange(self.step + 1)
            while len(ran[0].steps) < n_steps and not ran[0].is_done:
                more = self._exchange(self.step + 1 + len(ran[0].steps))
                ran = [new._replace(steps=old.steps + new.steps) for old, new in zip(ran, more)]
        n_made = len(ran[0].steps)
        self.step += n_made
        self.optimizer.nr_update[KEY] += n_made
        for _ in range(n_made):
            self.optimizer.step_schedules()
        return ran

    def _exchange(self, step: int) -> List[Any]:
        """Make one step as ``SyncRunner`` does."""
        learned = _copied(self.each("learn", step))
        parts = [[of_worker[number] for of_worker in learned] for number in range(len(learned))]
        sums = _copied(self.each("add_up", parts))
        changed = _copied(self.each("step", [sums] * len(sums)))
        return self.each("take", [changed] * len(changed))

    def train(self, n_epochs: int) -> Any:
        """Train for some epochs. RETURNS: The weights."""
        for epoch in range(n_epochs):
            self.each("start_epoch", epoch)
            self.finish()
        return self.weights()

    def weights(self) -> Any:
        """Return the weights, after checking that all workers have the same."""
        found = [to_numpy(worker.learner.weights.copy()) for worker in self.workers]
        assert all(numpy.array_equal(each, found[0]) for each in found)
        return found[0]

    def state(self) -> Dict[str, Any]:
        """Return each array of the optimizer, collected from the workers that own its parts."""
        arrays: Dict[str, Any] = {}
        for worker in self.workers:
            for now, owned in worker.owned():
                for name in owned:
                    whole = arrays.setdefault(name, numpy.zeros(len(worker.arrays[VALUES]), "f"))
                    whole[now] = owned[name]
        assert numpy.array_equal(arrays.pop(VALUES), self.weights())
        assert set(arrays) <= set(ARRAYS)
        return arrays


def _copied(message: Any) -> Any:
    """Return a read-only copy, as another process would get it."""
    if isinstance(message, numpy.ndarray):
        copied = message.copy()
        copied.flags.writeable = False
        return copied
    if isinstance(message, dict):
        return {key: _copied(value) for key, value in message.items()}
    if isinstance(message, (list, tuple)):
        return type(message)(map(_copied, message))
    return message


def check_worker_left_alone(text, n_microbatches, plane="shm"):
    """Leave the first of two workers alone within its first step. Check that it makes the same step
    as a worker that was always alone."""
    workers = ThreadedWorkers(text, 2, n_microbatches, plane)
    workers.each("start_epoch", 0)
    survivor, before = workers.workers[0], workers.weights()
    place = survivor.place()
    if plane == "shm":
        workers.give_up()
        with pytest.raises(Aborted):
            survivor.run(0, 1)
    else:  # The other worker dies before it gets its results.
        survivor.learn(1)
    workers.workers, workers.slots = [survivor], Slots(n_microbatches, 1)
    workers.connect(before, {}, [])
    survivor.go_to(place)
    workers.run(1)
    alone = ThreadedWorkers(text, 1, n_microbatches)
    alone.each("start_epoch", 0)
    alone.run(1)
    assert numpy.array_equal(workers.weights(), alone.weights())
