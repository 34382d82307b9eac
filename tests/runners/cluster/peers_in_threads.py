"""Run a few peers in threads of this process, with the same classes as on Ray."""

import threading
from typing import Any, Dict, List

import numpy
import pytest
from thinc.api import to_numpy

from thincdialog.optimizers.state import ARRAYS, KEY, optimizer_state
from thincdialog.runners.cluster.lone_plane import Aborted, LonePlane
from thincdialog.runners.cluster.peer import Peer
from thincdialog.runners.cluster.shared_plane import SharedPlane, abort, shared_layout
from thincdialog.runners.cluster.slots import Slots
from thincdialog.runners.cluster.store_plane import Mailbox, StorePlane
from thincdialog.runners.mapped_arrays import MappedArrays
from thincdialog.training.experiment import Experiment


def made(text: str) -> Experiment:
    """Return an experiment with its initial weights."""
    experiment = Experiment.from_config(text)
    with experiment.working():
        teacher = experiment.training_split()
        experiment.agent.initialize(teacher, tokenizer=experiment.tokenizer, seed=experiment.seed)
    return experiment


class Peers:
    """Some workers, each with its own experiment.

    n_microbatches (int): Microbatches per step.
    plane (str): "shm" or "store". A single worker uses LonePlane.
    """

    def __init__(self, text: str, n_workers: int, n_microbatches: int, plane: str = "shm"):
        self.peers: List[Peer] = []
        for _ in range(n_workers):
            experiment = made(text)
            with experiment.working():
                self.peers.append(Peer(experiment, experiment.training_split()))
        self.slots, self.plane = Slots(n_microbatches, n_workers), plane
        self.optimizer = made(text).optimizer
        self.step = 0
        learner: Any = self.peers[0].learner
        self.join(to_numpy(learner.weights), {}, [])

    def join(self, values: Any, arrays: Dict[str, Any], kept: List[str]) -> None:
        stretches, n = self.peers[0].stretches, len(self.peers)
        state = {**optimizer_state(self.optimizer)[0], "kept": kept}
        self.memory = MappedArrays(shared_layout(len(values), stretches, self.slots))
        self.memory.arrays["values"][:] = values
        boxes = self.boxes = [Mailbox() for _ in self.peers]
        for number, peer in enumerate(self.peers):
            plane: Any
            if n == 1:
                plane = LonePlane(values, stretches, self.slots)
            elif self.plane == "shm":
                opened = MappedArrays.open(self.memory.mapping)
                plane = SharedPlane(opened, stretches, self.slots, number)
            else:

                def send(other: int, key: Any, message: Any) -> None:
                    boxes[other].put(key, _copied(message))

                plane = StorePlane(values, stretches, self.slots, number, send, boxes[number])
            for name, array in arrays.items():
                plane.state[name][:] = array
            with peer.experiment.working():
                peer.join(plane, state)

    def each(self, call: str, *given: Any) -> List[Any]:
        """Call a method of all workers at the same time. Return the results."""
        answers: List[Any] = [None] * len(self.peers)

        def carry_out(number: int) -> None:
            try:
                answers[number] = getattr(self.peers[number], call)(*given)
            except BaseException as error:
                answers[number] = error
                self.give_up()

        threads = [threading.Thread(target=carry_out, args=(n,)) for n in range(len(self.peers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors:  # Aborted workers are not the cause.
            raise min(errors, key=lambda error: isinstance(error, Aborted))
        return answers

    def give_up(self) -> None:
        """Abort all communication, so that no worker waits for another."""
        abort(self.memory)
        for box in self.boxes:
            box.abandon()

    def run(self, n_steps: int) -> List[Any]:
        """Make some steps, or fewer at the end of the epoch. Return the results of the workers."""
        ran = self.each("run", self.step, n_steps)
        n_made = len(ran[0].steps)
        self.step += n_made
        self.optimizer.nr_update[KEY] += n_made
        for _ in range(n_made):
            self.optimizer.step_schedules()
        return ran

    def train(self, n_epochs: int) -> Any:
        """Train for some epochs. RETURNS: The weights."""
        for epoch in range(n_epochs):
            self.each("start_epoch", epoch)
            while not self.run(5)[0].is_done:
                pass
        return self.weights()

    def weights(self) -> Any:
        """Return the weights, after checking that all workers have the same."""
        found = [to_numpy(peer.learner.weights.copy()) for peer in self.peers]
        assert all(numpy.array_equal(each, found[0]) for each in found)
        return found[0]

    def state(self) -> Dict[str, Any]:
        """Return each array of the optimizer, collected from the workers that own its parts."""
        arrays: Dict[str, Any] = {}
        for peer in self.peers:
            for piece in peer.owned.pieces:
                now = slice(piece.start, piece.stop)
                for name in peer.owned.kept():
                    known = arrays.setdefault(name, numpy.zeros(len(peer.plane.values), "f"))
                    known[now] = peer.plane.state[name][now]
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


def check_peer_left_alone(text, n_microbatches, plane="shm"):
    """Leave the first of two peers alone within its first step. Check that it makes the same step
    as a peer that was always alone."""
    peers = Peers(text, 2, n_microbatches, plane)
    peers.each("start_epoch", 0)
    survivor, before = peers.peers[0], peers.weights()
    place = survivor.place()
    peers.give_up()
    with pytest.raises(Aborted):
        survivor.run(0, 1)
    peers.peers, peers.slots = [survivor], Slots(n_microbatches, 1)
    peers.join(before, {}, [])
    survivor.go_to(place)
    peers.run(1)
    alone = Peers(text, 1, n_microbatches)
    alone.each("start_epoch", 0)
    alone.run(1)
    assert numpy.array_equal(peers.weights(), alone.weights())
