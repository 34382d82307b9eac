"""A world of more than two agents, built from a config."""

import pytest

from tests.training.examples import RANKER, quietly_train
from tests.worlds.talkers import make_teacher
from thincdialog.agents.conversation import ConversationAgent
from thincdialog.api import ConfigError, Experiment, Message, MultiAgentWorld, evaluate

WORLD = """[world]
@worlds = "thincdialog.MultiAgentWorld.v1"

[world.others.waiter]
@agents = "thincdialog.FixedResponse.v1"
text = "Next, please!"
"""
BATCHED = RANKER[RANKER.index("[world]") : RANKER.index("[training]")]
TOGETHER = RANKER.replace(BATCHED, WORLD + "\n")


def test_multi_agent_world_trains_and_evaluates_from_a_config(tmp_path):
    result, _ = quietly_train(TOGETHER, output=tmp_path / "run", training__max_epochs=1)
    alone, _ = quietly_train(
        TOGETHER.replace(WORLD, '[world]\n@worlds = "thincdialog.PartnerWorld.v1"\n'),
        training__max_epochs=1,
    )
    # Episodes are single turns, so no agent observes the waiter before the next episode begins.
    assert result.scores == alone.scores
    assert evaluate(tmp_path / "run" / "model-best")["hits@1"] == result.scores["test"]["hits@1"]


IN_BATCHES = BATCHED.strip() + "\n\n" + WORLD.replace("[world", "[world.conversation")


@pytest.mark.parametrize("kind", ["BatchWorld", "DynamicBatchWorld"])
def test_multi_agent_world_from_a_config_runs_in_batches(tmp_path, kind):
    # In batches of one, a reply would have no others to be ranked against.
    text = RANKER.replace('candidates = "inline"', 'candidates = "batch"')
    one, _ = quietly_train(text, training__max_epochs=1)
    batches = IN_BATCHES.replace("BatchWorld", kind, 1)
    three, _ = quietly_train(text.replace(BATCHED, batches + "\n"), training__max_epochs=1)
    assert three.scores == one.scores and three.scores["test"]["examples"] > 16


def test_multi_agent_world_from_a_config_lets_all_agents_act():
    experiment = Experiment.from_config(TOGETHER)
    train = experiment.training_split()
    with experiment.working():
        experiment.agent.initialize(train, tokenizer=experiment.tokenizer)
        world = experiment.make_world(train, experiment.agent)
        world.parley()
    assert [act["agent"] for act in world.acts] == ["coffee", "ranker", "waiter"]
    assert world.display().splitlines()[3] == "   [waiter]: Next, please!"
    assert world.report()["examples"].value() == 1


@pytest.mark.parametrize(
    "world, said",
    [
        (WORLD.replace("FixedResponse", "Retrieval").replace('text = "Next, please!"', ""),
         r"\[world.others.waiter\] learns from training data - choose"),
        (WORLD[: WORLD.index("[world.o")] + "others = {}\n", r"\[world\] has no other agent"),
    ],
)  # fmt: skip
def test_multi_agent_world_refuses_invalid_others(world, said):
    with pytest.raises(ConfigError, match=said):
        Experiment.from_config(TOGETHER.replace(WORLD, world))


class Memory(ConversationAgent):
    """Replies with the number of turns that it remembers."""

    def batch_act(self, observations):
        return [Message(text=str(len(each["turns"]))) for each in observations]


def test_multi_agent_world_forgets_at_the_end_of_an_episode():
    world = MultiAgentWorld([make_teacher([2, 2], False), Memory(), Memory()])
    told = []
    while not world.epoch_done():
        world.parley()
        told.append([act["text"] for act in world.acts[1:]])
    assert told[:2] == told[2:] and told[0][0] == "1" and told[1][0] != "1"
