"""A look at the first batches of training, before the first step."""

from itertools import count
from typing import Any

from .experiment import Experiment


def show_first_batches(experiment: Experiment) -> None:
    """Let an agent look at the batches that it will be given first, as far as their order is
    known. (Of streams it is not.)

    experiment (Experiment): Its agent has its first weights, and learns nothing here.
    RAISES (DialogError): If nothing can be learnt from them, or from all that the config wants.
    """
    if not experiment.agent.learns:
        return
    agent, training, n_batches = experiment.learner, experiment.training, 0
    teacher = experiment.training_split()
    if agent.has_looked or teacher.n_examples is None:
        return

    def look(batch: Any) -> None:
        nonlocal n_batches
        n_batches += agent.look(batch)

    per_step = training["accumulate_gradient"]
    most, least = training["max_steps"] * per_step, training["min_steps"] * per_step
    with experiment.make_world(teacher, agent.onlooker(look)) as world:
        for epoch in count():
            world.start_epoch(epoch, experiment.seed)
            while not (world.epoch_done() or agent.has_looked or 0 < most <= n_batches):
                world.parley()
            is_last = training["max_epochs"] and epoch + 1 >= training["max_epochs"]
            is_last = is_last and n_batches >= least
            # Where no example has a label, more epochs are no help.
            if agent.has_looked or 0 < most <= n_batches or is_last or not n_batches:
                break
    agent.check_learnt(n_batches)
