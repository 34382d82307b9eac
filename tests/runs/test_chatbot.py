"""A saved model to talk to, and its answers to odd input."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from tests.training.examples import CLASSIFIER, RANKER, quietly_train
from thincdialog.agents.repeat_label import RepeatLabelAgent
from thincdialog.api import ConfigError, DialogError, Experiment, Message, load
from thincdialog.config import build_block
from thincdialog.messages import PARTNER, SELF
from thincdialog.runners.alone import one_step


@pytest.fixture(scope="module")
def chatbot(tmp_path_factory):
    result, _ = quietly_train(output=tmp_path_factory.mktemp("model"), training__max_steps=1)
    return load(result.output / "model-best")


@pytest.mark.parametrize("text", [None, 5, b"hi", ["hi"]])
def test_respond_takes_strings_only_and_continues(chatbot, text):
    with pytest.raises(TypeError, match="text should be a string, got"):
        chatbot.respond(text)
    assert chatbot.respond("hi")


@pytest.mark.parametrize("candidates", ["ab", [None], ["a", 5]])
def test_respond_takes_lists_of_candidates_only(chatbot, candidates):
    with pytest.raises(TypeError, match="candidates should be a list of strings"):
        chatbot.respond("hi", candidates)
    assert chatbot.respond("hi", ["a", "b"]) in ("a", "b")


def test_respond_takes_no_empty_list_of_candidates(chatbot):
    with pytest.raises(ValueError, match="candidates is empty"):
        chatbot.respond("hi", [])
    with pytest.raises(ValueError, match="candidates is empty"):
        chatbot.respond_to_all(["hi"], [])


def test_respond_gives_answers_with_probabilities(chatbot):
    chatbot.reset()
    candidates = ["a", "b", "no", "b", "yes please"]
    answers = chatbot.respond("hi", candidates, top=10)
    assert sorted(answer.text for answer in answers) == sorted(set(candidates))
    chances = [answer.probability for answer in answers]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1) and 0 < chances[-1] < chances[0]
    chatbot.reset()
    assert chatbot.respond("hi", candidates, top=2) == answers[:2]
    chatbot.reset()
    assert chatbot.respond("hi", candidates) == answers[0].text


def test_respond_says_that_it_does_not_know_below_the_threshold(chatbot):
    chatbot.reset()
    best, *rest = chatbot.respond("hi", ["a", "yes please", "no"], top=3)
    for threshold, rejected in ((best.probability, []), (1.0, [("I don't know.", None)])):
        chatbot.reset()
        found = chatbot.respond("hi", ["a", "yes please", "no"], top=3, threshold=threshold)
        assert found == [*rejected, best, *rest]
        chatbot.reset()
        said = chatbot.respond("hi", ["a", "yes please", "no"], threshold=threshold)
        assert said == found[0].text
        assert chatbot._talker.conversation == [(PARTNER, "hi"), (SELF, said)]


@pytest.mark.parametrize(
    "wrong",
    [{"top": 0}, {"top": 1.5}, {"top": True}, {"threshold": 2.0}, {"threshold": "a"}],
)
def test_respond_takes_numbers_that_have_a_meaning(chatbot, wrong):
    with pytest.raises(ValueError, match="= "):
        chatbot.respond("hi", **wrong)
    assert chatbot.respond("hi")


def test_respond_to_all_answers_each_conversation_as_alone(chatbot, monkeypatch):
    monkeypatch.setattr("thincdialog.training.trained_model.MAX_TOGETHER", 2)
    candidates = ["a", "b", "yes please", "hi", "what else?"]
    talks = ["hi", ["hi", "what else?", "milk"], ["milk"], "tea", ["yes please", "b"]]
    alone = []
    for talk in talks:
        chatbot.reset()
        *before, text = [talk] if isinstance(talk, str) else talk
        roles = [SELF, PARTNER] if len(before) % 2 else [PARTNER, SELF]
        chatbot._talker.set_conversation_state(list(zip(roles, before)))
        alone.append(chatbot.respond(text, candidates, top=2))
    kept = list(chatbot._talker.conversation)
    found = chatbot.respond_to_all(talks, candidates, top=2)
    assert [[a.text for a in one] for one in found] == [[a.text for a in one] for one in alone]
    for one, other in zip(found, alone):
        assert [a.probability for a in one] == pytest.approx([a.probability for a in other])
    assert chatbot.respond_to_all(talks, candidates) == [one[0].text for one in found]
    assert chatbot._talker.conversation == kept and chatbot.respond_to_all([]) == []


@pytest.mark.parametrize("wrong", ["hi", [5], [[]], [["hi", None]]])
def test_respond_to_all_takes_conversations_only(chatbot, wrong):
    with pytest.raises(TypeError, match="conversation"):
        chatbot.respond_to_all(wrong)


def test_respond_needs_probabilities_for_a_threshold(tmp_path):
    result, _ = quietly_train(output=tmp_path, training__max_steps=1)
    bot = load(result.output / "model-best")
    bot.model.agent = bot.agent = bot._talker = RepeatLabelAgent()
    with pytest.raises(DialogError, match="repeat_label returns no probabilities"):
        bot.respond("hi", threshold=0.1)
    assert bot.respond("hi", top=2) == [("", None)]


@pytest.mark.parametrize("text", ["", "\ud800", "\0", "x" * 100_000, "\n"])
def test_respond_answers_odd_texts(chatbot, text):
    assert chatbot.respond(text, ["a", "b"]) in ("a", "b")


def test_respond_answers_again_after_an_interrupt(chatbot, monkeypatch):
    def interrupted(observations):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(chatbot.agent, "answer", interrupted)
        patch.setattr(chatbot._talker, "answer", interrupted)
        chatbot.respond("hi")
    assert chatbot.respond("hi", ["a", "b"]) in ("a", "b")


COPIES = {"pickle": lambda it: pickle.loads(pickle.dumps(it)), "deepcopy": copy.deepcopy}
CONFIGS = {
    "ranker": RANKER,
    "classifier": RANKER[: RANKER.index("[tokenizer]")]
    + CLASSIFIER
    + '[training]\nscore = "accuracy"\n',
    "retrieval": RANKER[: RANKER.index("[tokenizer]")]
    + '[agent]\n@agents = "thincdialog.Retrieval.v1"\n',
}
TEXTS = ["A latte, please.", "hello", "In a bucket!", "with vanilla", "Good morning", ""]


@pytest.fixture(scope="module", params=CONFIGS)
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    quietly_train(CONFIGS[request.param], output=folder, training__max_steps=3)
    return folder / "model-best"


def test_loading_refuses_settings_without_effect(folder):
    with pytest.raises(ConfigError, match="--training.max_stepz  'training.max_stepz' has no eff"):
        load(folder, overrides={"training.max_stepz": 3})


@pytest.mark.parametrize("how", COPIES)
def test_copies_answer_the_same_and_are_independent(folder, how):
    expected = [load(folder).respond(text) for text in TEXTS]
    chatbot = load(folder)
    assert [COPIES[how](chatbot).respond(text) for text in TEXTS] == expected
    # In the middle of a conversation.
    both, first = (load(folder) for _ in range(2))
    both.respond(TEXTS[0])
    first.respond(TEXTS[0])
    second = COPIES[how](first)
    told = [both.respond(TEXTS[2]), both.respond(TEXTS[3])]
    assert first.respond(TEXTS[2]) == second.respond(TEXTS[2]) == told[0]
    second.reset()
    assert first.respond(TEXTS[3]) == told[1]
    assert second.respond(TEXTS[1]) == expected[1]
    agent = COPIES[how](chatbot.agent)
    assert type(agent) is type(chatbot.agent) and agent is not chatbot.agent
    if agent.learns:
        assert agent.weights.tobytes() == chatbot.agent.weights.tobytes()
        agent.weights[:] = 0  # The weights are the copy's own, and so are those of its layers.
        node = next(node for node in agent.model.walk() if node.param_names)
        assert not node.get_param(node.param_names[0]).any()
        assert chatbot.agent.weights.any()


def talk(chatbot, texts):
    return [chatbot.respond(text, top=3) for text in texts]


def test_clone_shares_the_model_and_has_its_own_conversation(folder):
    fresh, chatbot = load(folder), load(folder)
    both = talk(fresh, TEXTS)
    fresh.reset()
    later = talk(fresh, TEXTS[2:])
    assert talk(chatbot, TEXTS[:2]) == both[:2]
    clone = chatbot.clone()
    assert type(clone) is type(chatbot)
    assert (clone.agent, clone.path, clone.meta) == (chatbot.agent, chatbot.path, chatbot.meta)
    # The clone starts a conversation, and neither chatbot changes the other's.
    assert talk(clone, TEXTS[2:4]) == later[:2]
    assert talk(chatbot, TEXTS[2:4]) == both[2:4]
    clone.reset()
    assert talk(chatbot, TEXTS[4:]) == both[4:]
    chatbot.reset()
    assert talk(clone, TEXTS) == talk(clone.clone(), TEXTS) == both


def check_clones_in_threads(folder, overrides=None):
    """Clones that talk at the same time answer as each would alone, from the model's first answer
    on."""
    orders = [np.random.default_rng(seed).permutation(TEXTS * 3).tolist() for seed in range(6)]
    expected = [talk(load(folder, overrides=overrides), texts) for texts in orders]
    chatbot, start = load(folder, overrides=overrides), Barrier(len(orders))

    def talk_to_a_clone(texts):
        clone = chatbot.clone()
        start.wait()
        return talk(clone, texts)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(orders)) as threads:
            assert list(threads.map(talk_to_a_clone, orders)) == expected
    finally:
        sys.setswitchinterval(before)
    assert talk(chatbot, orders[0]) == expected[0]


def test_clones_in_threads_answer_as_alone(folder):
    check_clones_in_threads(folder)


@pytest.mark.gpu
def test_clones_on_a_gpu_answer_in_threads_as_alone(folder):
    """On the last GPU, because threads start on the first."""
    cupy = pytest.importorskip("cupy")
    last = cupy.cuda.runtime.getDeviceCount() - 1
    check_clones_in_threads(folder, {"system.gpu_id": last})


def test_an_agent_that_was_pickled_continues_training():
    """It trains bit for bit like the agent that it is a copy of."""
    experiment = Experiment.from_config(RANKER)
    found = []
    with experiment.working():
        experiment.agent.initialize(
            experiment.training_split(), tokenizer=experiment.tokenizer, seed=3
        )
        for agent in (pickle.loads(pickle.dumps(experiment.agent)), experiment.agent):
            world = experiment.make_world(experiment.training_split(), agent)
            optimizer = build_block(experiment.checked, "training.optimizer")
            world.start_epoch(0, 3)
            for step in (1, 2):
                one_step(agent, world, optimizer, 3, step, 1)
            found.append(agent.weights.tobytes())
    assert found[0] == found[1]


def test_threads_that_share_an_agent_get_the_right_answers(folder):
    """Each thread talks with a clone, about candidates that have not been encoded yet."""
    lists = [[f"{word} {n}" for word in ("red", "green", "blue")] for n in range(40)]
    one = load(folder)

    def answers(talker, numbers):
        told = {}
        for n in numbers:
            talker.reset()
            talker.observe(Message(text=TEXTS[n % 6], label_candidates=lists[n], agent="user"))
            told[n] = talker.act()["text"]
        return told

    expected = answers(one.agent.clone(), range(40))
    shared = load(folder)
    with ThreadPoolExecutor(6) as threads:
        orders = [np.random.default_rng(seed).permutation(40).tolist() for seed in range(6)]
        found = threads.map(lambda order: answers(shared.agent.clone(), order), orders)
        assert all(told == expected for told in found)
    # And in one conversation, one thread after the other.
    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(shared.respond, TEXTS * 5))


def test_respond_of_a_classifier_chooses_among_candidates(tmp_path):
    task = RANKER[RANKER.index("[tasks.coffee]") : RANKER.index("[tokenizer]")]
    quietly_train(task + CLASSIFIER, tmp_path, training__max_steps=3)
    bot = load(tmp_path / "model-last")
    some = [bot.agent.classes[4], "no class", bot.agent.classes[2]]
    answers = bot.respond("hi", some, top=9)
    assert {answer.text for answer in answers} == {some[0], some[2]}
    assert sum(answer.probability for answer in answers) == pytest.approx(1.0)
    assert bot.respond_to_all(["hi"], some, top=9) == [answers]
    for respond in (bot.respond, lambda *given: bot.respond_to_all([given[0]], given[1])):
        with pytest.raises(
            DialogError, match=r"^None of the candidates \('x', 'y'\) is a class of the model \('"
        ):
            respond("hi", ["x", "y"])
