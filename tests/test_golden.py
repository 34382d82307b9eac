"""The order of examples for a seed does not change from version to version."""

import hashlib

import pytest

from thincdialog.api import Agent, Experiment, Message
from thincdialog.messages import column

COFFEE = """
[tasks.coffee]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 300

[tasks.coffee.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"

[agent]
@agents = "thincdialog.RepeatLabel.v1"

[world.batcher]
"""
TEA = """
[tasks.tea]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 100
seed = 7

[mixture]
unit = "words"
repeat = true

[mixture.weights]
coffee = 1.0
tea = 2.5
"""
BATCHSORT = '@batchers = "thincdialog.Batchsort.v1"\nsize = 32\n'
WORDS = '@batchers = "thincdialog.Words.v1"\nbudget = 700\n'
STREAM = ("n_train = 300", "n_train = 300\nstreaming = true")
# If these orders change, two versions no longer train the same weights.
GOLDEN = {
    "Fixed": (COFFEE + "size = 32\n", (114, "8b467a955fbb6d74")),
    "Batchsort": (COFFEE + BATCHSORT, (114, "81cfdd56e61536db")),
    "Words": (COFFEE + WORDS, (416, "d0fd55ff9443206a")),
    "Words of a stream": (COFFEE.replace(*STREAM) + WORDS, (416, "d0fd55ff9443206a")),
    "mixture": (COFFEE + WORDS + TEA, (708, "d1de99bd13504508")),
}


class Noting(Agent):
    """Keeps the ids of every batch."""

    def __init__(self):
        self.batches = []

    def batch_act(self, observations):
        self.batches.append(column(observations, "id"))
        return [Message(text="")] * len(observations)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_order_of_two_epochs(name):
    config, golden = GOLDEN[name]
    experiment, agent = Experiment.from_config(config, {"system.seed": 3}), Noting()
    world = experiment.make_world(experiment.training_split(), agent)
    for epoch in (0, 1):
        world.start_epoch(epoch, experiment.seed)
        while not world.epoch_done():
            world.parley()
    digest = hashlib.sha256(repr([list(ids) for ids in agent.batches]).encode()).hexdigest()
    assert (len(agent.batches), digest[:16]) == golden
