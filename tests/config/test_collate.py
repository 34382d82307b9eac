"""Static methods `collate` of data sets and agents."""

import catalogue
import numpy as np
import pytest

from tests.training.examples import quietly_train
from thincdialog.agents.classifier import ClassifierAgent
from thincdialog.api import ConfigError, DialogError, evaluate, load, registry
from thincdialog.config import CodeError, check_config, load_config, resolve_config

CONFIG = """
[tasks.colours]
@teachers = "thincdialog.Dataset.v1"

[tasks.colours.train]
@datasets = "lights.v1"

[tasks.colours.dev]
@datasets = "lights.v1"

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@layers = "Relu.v1"
nO = 8

[training]
max_epochs = 20.0
score = "accuracy"

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.05
"""
OTHER = """
[tasks.more]
@teachers = "thincdialog.Dataset.v1"

[tasks.more.train]
@datasets = "more_lights.v1"
"""


@registry.datasets("lights.v1")
class Lights:
    """Rows of a light and what to do."""

    def __iter__(self):
        for number, label in enumerate(["stop", "wait", "go"] * 20):
            yield {"light": np.eye(3)[number % 3], "label": label}

    @staticmethod
    def collate(batch, tokens):
        return np.stack(batch.column("light"))


@registry.datasets("more_lights.v1")
class More(Lights):
    """The same rows."""


@registry.datasets("lights_of_pytorch.v1")
class ForLoader(Lights):
    """Rows with a method for PyTorch's DataLoader."""

    def collate(self, rows):
        raise NotImplementedError


@registry.datasets("lights_without_static.v1")
class WithoutStatic(Lights):
    """Rows with a method for an agent that lacks its decorator."""

    def collate(self, batch, tokens):
        raise NotImplementedError


@registry.agents("lights_agent.v1")
class Own(ClassifierAgent):
    """An agent with a function of its own."""

    @staticmethod
    def collate(batch, tokens):
        return np.ones((len(batch), 3))


def agent_of(config):
    return resolve_config(load_config(config))["agent"]


def test_collate_that_is_not_static_is_not_used():
    config = CONFIG.replace(
        'train]\n@datasets = "lights.v1"', 'train]\n@datasets = "lights_of_pytorch.v1"'
    )
    assert agent_of(config).collate is None
    config = CONFIG.replace(
        "[agent.model]",
        '[agent.collate]\n@collates = "thincdialog.OfDataset.v1"\n'
        'dataset = "lights_of_pytorch.v1"\n\n[agent.model]',
        1,
    )
    with pytest.raises(ConfigError, match="no data set of this name has a static method 'collate'"):
        agent_of(config)


@pytest.mark.parametrize("chosen", [False, True])
def test_collate_for_an_agent_must_be_static(chosen):
    name = "lights_without_static.v1"
    config = CONFIG.replace("lights.v1", name)
    if chosen:
        block = f'[agent.collate]\n@collates = "thincdialog.OfDataset.v1"\ndataset = "{name}"\n'
        config = config.replace("[agent.model]", f"{block}\n[agent.model]", 1)
    wanted = r"test_collate.py:\d+  WithoutStatic.collate\(\) .*: make it a @staticmethod"
    with pytest.raises(DialogError, match=wanted):
        agent_of(config)
    # Nothing needs the method if the agent's class has its own.
    own = CONFIG.replace("lights.v1", name)
    own = own.replace("thincdialog.Classifier.v1", "lights_agent.v1", 1)
    assert agent_of(own).collate is Own.collate


def test_collate_of_a_dataset_is_used_and_named_in_the_saved_model(tmp_path, monkeypatch):
    found, _ = quietly_train(CONFIG, tmp_path)
    assert found.scores["dev"]["accuracy"] == 1.0
    assert evaluate(tmp_path / "model-best", split="dev")["accuracy"] == 1.0
    saved = load_config(tmp_path / "model-best" / "config.cfg")
    block = {"@collates": "thincdialog.OfDataset.v1", "dataset": "lights.v1"}
    assert saved.config["agent"]["collate"] == block
    chatbot = load(tmp_path / "model-best")
    with pytest.raises(CodeError, match=r"Lights.collate\(\) needs 'light', .*chat has only texts"):
        chatbot.respond("red")
    # Without the code, the error names the class.
    monkeypatch.delitem(catalogue.REGISTRY, ("thinc", "datasets", "lights.v1"))
    with pytest.raises(ConfigError, match=r"\[agent.collate\] .*'lights.v1'.* needs --code FILE"):
        load(tmp_path / "model-best")


def test_collate_of_the_config_and_of_the_agent_come_first():
    assert agent_of(CONFIG).collate is Lights.collate
    null = CONFIG.replace("[agent.model]", "collate = null\n\n[agent.model]", 1)
    assert agent_of(null).collate is None
    own = CONFIG.replace("thincdialog.Classifier.v1", "lights_agent.v1", 1)
    assert agent_of(own).collate is Own.collate


def test_collate_of_several_datasets_must_be_chosen():
    both = f"{CONFIG}{OTHER}"
    (problem,) = check_config(both)
    assert "the data sets ['lights.v1', 'more_lights.v1'] each have their own" in str(problem)
    chosen = '[agent.collate]\n@collates = "thincdialog.OfDataset.v1"\ndataset = "lights.v1"\n'
    assert agent_of(f"{both}\n{chosen}").collate is Lights.collate
    same = both.replace("more_lights.v1", "lights.v1")
    assert agent_of(same).collate is Lights.collate
