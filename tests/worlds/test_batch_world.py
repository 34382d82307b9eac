from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.talkers import (
    BatchListener,
    Listener,
    WholeListener,
    expected_conversations,
    make_teacher,
    run_epoch,
    scored,
)
from thincdialog.batchers import Fixed
from thincdialog.contract import CodeError
from thincdialog.errors import ProtocolError
from thincdialog.examples import Batch
from thincdialog.messages import Message
from thincdialog.metrics import SumMetric, report_values
from thincdialog.protocol import Agent
from thincdialog.registry import registry
from thincdialog.worlds import BatchWorld, DynamicBatchWorld, MultiAgentWorld, PartnerWorld

episode_lengths = st.lists(st.integers(1, 5), min_size=1, max_size=20)
sizes = st.integers(1, 25)


def check_conversations(agent, lengths):
    """Check that each example was seen once, and each conversation was whole, in order and with
    one copy."""
    expected = expected_conversations(lengths)
    assert Counter(agent.heard) == Counter(name for turns in expected for name in turns)
    assert sorted(map(tuple, agent.conversations)) == sorted(map(tuple, expected))


@pytest.mark.parametrize("training", [False, True])
@given(lengths=episode_lengths, seed=st.integers(0, 99))
def test_partner_world_every_example_once_and_in_its_conversation(training, lengths, seed):
    agent = Listener()
    world = PartnerWorld(make_teacher(lengths, training), agent)
    assert run_epoch(world, seed=seed) == sum(lengths)
    check_conversations(agent, lengths)


@given(n_examples=st.integers(1, 40), size=sizes, training=st.booleans())
def test_batch_world_gives_the_same_with_whole_batches_and_copies(n_examples, size, training):
    results = []
    for kind in (BatchListener, WholeListener):
        agent = kind()
        world = BatchWorld(scored(make_teacher([1] * n_examples, training)), agent, Fixed(size))
        run_epoch(world, epoch=3, seed=5)
        results.append((world.report(), agent.heard, agent.batches))
        assert world.has_whole_batches is (kind is WholeListener)
        assert bool(world._talks) is (kind is BatchListener)
    assert results[0] == results[1]


def test_batch_world_batches_are_full_while_data_lasts():
    agent = BatchListener()
    run_epoch(BatchWorld(make_teacher([1] * 10, False), agent, Fixed(4)))
    assert agent.batches == [4, 4, 2]
    agent = BatchListener()
    # Three rows for three conversations of 1, 3 and 2 turns, without filling.
    world = BatchWorld(make_teacher([1, 3, 2], False), agent, Fixed(64))
    run_epoch(world)
    assert agent.batches == [3, 2, 1]
    assert len(world._talks) == 3


def test_batch_world_uses_batch_act_of_the_original_unless_disabled():
    agent = BatchListener()
    world = BatchWorld(make_teacher([2, 2], False), agent, Fixed(2))
    run_epoch(world)
    assert agent.batches == [2, 2]

    class OneByOne(WholeListener):
        use_batch_act = False

        def act(self):
            return Listener.act(self)

    agent = OneByOne()
    world = BatchWorld(make_teacher([1, 1], False), agent, Fixed(2))
    run_epoch(world)
    assert agent.batches == []
    check_conversations(agent, [1, 1])


@pytest.mark.parametrize("make_world", [BatchWorld, DynamicBatchWorld])
def test_batch_world_refuses_missing_replies(make_world):
    class Forgetful(BatchListener):
        def batch_act(self, observations):
            return super().batch_act(observations)[1:]

    world = make_world(make_teacher([1, 1], False), Forgetful(), Fixed(2))
    said = r"test_batch_world.py:\d+  Forgetful.batch_act\(\) returned a list of 1 .* one for each"
    with pytest.raises(CodeError, match=said):
        world.parley()


def test_batch_world_acts_are_messages_and_replies():
    world = BatchWorld(make_teacher([1, 1], False), WholeListener(), Fixed(2))
    world.parley()
    messages, replies = world.acts
    assert [message["text"] for message in messages] == ["say 0 0", "say 1 0"]
    assert [reply["text"] for reply in replies] == ["0/0", "1/0"]
    assert isinstance(messages, Batch)


@pytest.fixture(params=["PartnerWorld", "BatchWorld", "MultiAgentWorld"])
def world(request):
    teacher = make_teacher([2], False)
    if request.param == "PartnerWorld":
        return PartnerWorld(teacher, Listener())
    if request.param == "BatchWorld":
        return BatchWorld(teacher, BatchListener(), Fixed(4))
    return MultiAgentWorld([teacher, Listener()])


def test_world_misuse_names_the_call(world):
    name = type(world).__name__
    run_epoch(world)
    with pytest.raises(ProtocolError, match=rf"{name}\.parley\(\).*start_epoch\(\)"):
        world.parley()
    world.start_epoch(1, 0)
    with world:
        world.parley()
    with pytest.raises(ProtocolError, match=rf"{name}\.parley\(\).*shutdown\(\)"):
        world.parley()
    world.shutdown()


def test_world_leaves_given_agents_open_and_resets_metrics(world):
    class Open(Listener):
        def shutdown(self):
            raise AssertionError("the agent belongs to the caller")

    agent = Open()
    run_epoch(world)
    assert [value for key, value in report_values(world.report()).items() if "examples" in key] == [
        2.0
    ]
    world.reset_metrics()
    assert not any(report_values(world.report()).values())
    with PartnerWorld(make_teacher([1], False), agent) as partner:
        run_epoch(partner)
    assert agent.heard == ["0/0"]


def test_world_reset_forgets_conversations():
    agent = Listener()
    world = PartnerWorld(make_teacher([3], False), agent)
    world.parley()
    assert agent.turns == ["0/0"]
    world.reset()
    assert agent.turns == [] and world.acts == ()


def test_world_report_first_agent_wins():
    class Reporting(Listener):
        def report(self):
            return {"examples": SumMetric(9), "loss": SumMetric(2)}

    world = PartnerWorld(make_teacher([1], False), Reporting())
    run_epoch(world)
    report = world.report()
    assert report["examples"].value() == 1.0
    assert report["loss"].value() == 2.0


@pytest.mark.parametrize("kind", [BatchWorld, DynamicBatchWorld, PartnerWorld])
def test_registered_worlds_build_from_a_config(kind):
    config = {"@worlds": f"thincdialog.{kind.__name__}.v1"}
    if kind is not PartnerWorld:
        config["batcher"] = {"@batchers": "thincdialog.Fixed.v1", "size": 3}
    built = registry.resolve({"world": config})["world"]
    world = built(make_teacher([1, 2], False), BatchListener())
    assert type(world) is kind and (kind is PartnerWorld or world.batcher.sizes.at(0) == 3)


@pytest.mark.parametrize("kind", [BatchWorld, DynamicBatchWorld])
def test_a_conversation_must_be_a_world_of_agents(kind):
    batcher = {"@batchers": "thincdialog.Fixed.v1", "size": 3}
    world = {"@worlds": f"thincdialog.{kind.__name__}.v1", "batcher": batcher}
    inner = {"@worlds": "thincdialog.HogwildWorld.v1"}
    for name, conversation in (("HogwildWorld", inner), (kind.__name__, world)):
        with pytest.raises(ValueError, match=f"conversation is a {name}, expected a PartnerWorld"):
            registry.resolve({"world": {**world, "conversation": conversation}})


class Speaker(Agent):
    """Says its id and the number of messages that it observed since its last act."""

    def __init__(self, name):
        self.id = name
        self.since = []

    def observe(self, message):
        super().observe(message)
        self.since.append((message["agent"], message["text"]))
        return message

    def act(self):
        text = f"{self.id} heard {len(self.since)}"
        self.heard, self.since = self.since, []
        return Message(text=text)


def test_multi_agent_world_round_robin():
    a, b, c = (Speaker(name) for name in "abc")
    world = MultiAgentWorld([a, b, c])
    world.parley()
    assert [act["text"] for act in world.acts] == ["a heard 0", "b heard 1", "c heard 2"]
    assert c.heard == [("a", "a heard 0"), ("b", "b heard 1")]
    world.parley()
    assert [act["text"] for act in world.acts] == ["a heard 2", "b heard 2", "c heard 2"]
    assert a.heard == [("b", "b heard 1"), ("c", "c heard 2")]
    assert [act["agent"] for act in world.acts] == ["a", "b", "c"]
    assert not world.epoch_done()


def test_multi_agent_world_numbers_equal_names_and_refuses_misuse():
    world = MultiAgentWorld([Speaker("bot"), Speaker("bot"), Speaker("other")])
    assert world.names == ["bot_1", "bot_2", "other"]
    with pytest.raises(ValueError, match="two agents or more, got 1"):
        MultiAgentWorld([Speaker("bot")])
    speaker = Speaker("bot")
    with pytest.raises(ValueError, match="same agent twice"):
        MultiAgentWorld([speaker, speaker])


def test_multi_agent_world_with_a_teacher_is_a_partner_world():
    agent = Listener()
    world = MultiAgentWorld([make_teacher([2, 3], False), agent])
    assert run_epoch(world) == 5
    check_conversations(agent, [2, 3])
    values = {
        "examples": 5,
        "accuracy": 0.2,
        "precision": 23 / 30,
        "recall": 11 / 15,
        "f1": 0.7231746,
    }
    named = {f"task/{name}": value for name, value in values.items()}
    assert report_values(world.report()) == pytest.approx(named)
