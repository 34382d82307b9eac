"""A look at the first batches of training, before the first step."""

from itertools import count

from ..agents.lone_replies import LoneReplies
from ..protocol import Learner
from .experiment import Experiment


def check_first_batches(experiment: Experiment) -> None:
    """See that an agent will have wrong replies to tell right ones from: in the batches that it
    will be given first, as far as their order is known. (Of streams it is not: there a ranker
    finds out while it learns.)

    experiment (Experiment): Its agent has its first weights, and stays as it is.
    RAISES (NothingToLearnError): If there are none in very many batches, or in all that the
        config wants.
    """
    agent, training, lone = experiment.agent, experiment.training, LoneReplies()
    if not isinstance(agent, Learner) or type(agent).n_choices is Learner.n_choices:
        return
    teacher = experiment.training_split()
    if teacher.n_examples is None:
        return
    onlooker = agent.clone()
    # It is given what the agent will be given, and learns nothing.
    onlooker.learn = lambda batch: lone.see(agent.n_choices(batch) or 0)  # type: ignore
    most = training["max_steps"] * training["accumulate_gradient"]
    with experiment.make_world(teacher, onlooker) as world:
        for epoch in count():
            world.start_epoch(epoch, experiment.seed)
            while not world.epoch_done():
                world.parley()
                if lone.is_over:
                    return
                if most and lone.n_batches >= most:
                    raise lone.error("all")
            if not lone.n_batches:
                return  # No example has a label: that is told elsewhere.
            if training["max_epochs"] and epoch + 1 >= training["max_epochs"]:
                raise lone.error("all")
