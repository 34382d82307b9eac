"""The ranker: what it learns from, what it answers with."""

import numpy
import pytest
from thinc.api import fix_random_seed

from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import (
    ConfigError,
    DataError,
    IterableTeacher,
    Message,
    ProtocolError,
    registry,
)
from thincdialog.ops.choice import get_dialog_ops, using_ops

from . import colours

ANSWERS = {"red": "stop", "green": "go", "amber": "wait", "blue": "swim"}
EXAMPLES = [
    {"text": f"{colour} {place}", "labels": [answer]}
    for place in ("here", "there", "now")
    for colour, answer in ANSWERS.items()
]


def build(train, **options):
    with using_ops(get_dialog_ops(-1)):
        encoder = registry.models.get("thincdialog.BagEncoder.v1")(width=16)
        model = registry.models.get("thincdialog.BiEncoder.v1")(encoder)
        agent = registry.agents.get("thincdialog.Ranker.v1")(model, **options)
        tokenizer = registry.tokenizers.get("thincdialog.Words.v1")()
        fix_random_seed(0)
        agent.initialize(train, tokenizer=tokenizer, seed=0)
    return agent


def learn(agent, teacher, epochs=30, size=4):
    optimizer = registry.optimizers.get("Adam.v1")(0.01)
    colours.learn(agent, teacher, optimizer, epochs, size)


def answer(agent, text, **fields):
    copy = agent.clone()
    copy.observe(Message(text=text, episode_done=True, **fields))
    return copy.act()


@pytest.fixture()
def teacher():
    return IterableTeacher({"train": EXAMPLES}).for_split("train", training=True)


@pytest.mark.parametrize("candidates", ["batch", "fixed"])
def test_ranker_learns_and_answers_from_fixed_candidates(teacher, candidates):
    agent = build(teacher, candidates=candidates)
    learn(agent, teacher)
    for colour, right in ANSWERS.items():
        reply = answer(agent, f"{colour} here")
        assert reply["text"] == right
        assert sorted(reply["text_candidates"]) == sorted(ANSWERS.values())


def test_ranker_learns_from_inline_candidates():
    examples = [{**row, "label_candidates": sorted(ANSWERS.values())} for row in EXAMPLES]
    teacher = IterableTeacher({"train": examples}).for_split("train", training=True)
    agent = build(teacher, candidates="inline")
    learn(agent, teacher)
    assert answer(agent, "red now", label_candidates=["go", "stop"])["text"] == "stop"


def test_ranker_learns_the_words_of_the_vocabulary(teacher):
    agent = build(teacher, candidates="vocab")
    assert set(ANSWERS.values()) | set(ANSWERS) <= set(agent.fixed)
    learn(agent, teacher)
    assert answer(agent, "green there")["text"] == "go"


def test_ranker_vocab_needs_a_vocabulary(teacher):
    with using_ops(get_dialog_ops(-1)):
        encoder = registry.models.get("thincdialog.BagEncoder.v1")(width=8)
        model = registry.models.get("thincdialog.BiEncoder.v1")(encoder)
        agent = registry.agents.get("thincdialog.Ranker.v1")(model, candidates="vocab")
        hashes = registry.tokenizers.get("thincdialog.HashNgrams.v1")(n_rows=64)
        with pytest.raises(ConfigError, match="has no vocabulary"):
            agent.initialize(teacher, tokenizer=hashes)


def test_ranker_inline_ranks_only_the_messages_own_candidates(teacher):
    agent = build(teacher)
    reply = answer(agent, "red here", label_candidates=["never seen", "go", "stop"])
    assert sorted(reply["text_candidates"]) == ["go", "never seen", "stop"]


def test_ranker_mixed_lists_in_one_batch_rank_as_alone(teacher):
    agent = build(teacher)
    lists = [["go", "stop"], ["wait", "swim", "go"], None, ["stop"]]
    messages = [
        Message(text=f"{colour} here", episode_done=True, label_candidates=texts)
        for colour, texts in zip(ANSWERS, lists)
    ]
    together = agent.batch_act(agent.batch_observe(messages))
    for message, reply in zip(messages, together):
        alone = agent.batch_act(agent.batch_observe([message]))[0]
        assert reply["text_candidates"] == alone["text_candidates"]


def test_ranker_candidates_of_the_batch_are_distinct_texts(teacher):
    """Two examples with the same reply are not told from each other."""
    agent = build(teacher)
    rows = [Message(labels=[text], id="x") for text in ("go", "stop", "go")]
    candidates, targets, allowed = agent._training_candidates(rows)
    expected = agent.replies(["go", "stop"])
    assert candidates.dataXd.tolist() == expected.dataXd.tolist()
    assert candidates.lengths.tolist() == expected.lengths.tolist()
    assert (targets.tolist(), allowed) == ([0, 1, 0], None)


def test_ranker_fixed_candidates_are_encoded_once_until_weights_change(teacher):
    agent = build(teacher)
    calls = []
    encode = agent._vectors.encode
    agent._vectors.encode = lambda texts: calls.append(list(texts)) or encode(texts)
    answer(agent, "red here")
    answer(agent, "green here")
    assert calls == [agent.fixed]
    agent.batch_act(agent.batch_observe([Message(text="red", labels=["stop"], id="0")]))
    agent.update(registry.optimizers.get("SGD.v1")(0.1))
    answer(agent, "red here")
    assert len(calls) == 2


def test_ranker_says_nothing_twice_in_a_chat(teacher):
    agent = build(teacher)
    talker = agent.clone()
    said = []
    for _ in range(4):
        talker.observe(Message(text="red here", episode_done=False))
        reply = talker.act()
        talker.self_observe(reply)
        said.append(reply["text"])
    assert sorted(said) == sorted(ANSWERS.values())


def test_ranker_label_that_is_no_candidate_is_a_data_error(teacher):
    agent = build(teacher, candidates="fixed")
    wrong = Message(text="red", labels=["fly"], id="7/0", episode_done=True)
    with pytest.raises(DataError, match="7/0 has the label 'fly', which is not among its fixed"):
        agent.batch_act(agent.batch_observe([wrong]))
    inline = build(teacher, candidates="inline")
    with pytest.raises(DataError, match='example 7/0 has no label_candidates.*= "batch"'):
        inline.batch_act(inline.batch_observe([wrong]))


def test_ranker_fixed_candidates_come_from_a_file(tmp_path, teacher):
    path = tmp_path / "candidates.txt"
    path.write_text("go\nstop\nwait\nswim\nfly\ngo\n")
    agent = build(teacher, fixed_candidates=str(path))
    assert agent.fixed == ["go", "stop", "wait", "swim", "fly"]


def test_ranker_keeps_the_most_frequent_replies():
    rows = [{"text": "a", "labels": [text]} for text in ("x", "y", "y", "z", "z")]
    teacher = IterableTeacher({"train": rows}).for_split("train", training=True)
    assert build(teacher, max_fixed_candidates=2).fixed == ["y", "z"]


def test_ranker_gradient_is_that_of_finite_differences(teacher):
    """The whole agent: text to vectors to scores to loss, against its weights."""
    agent = build(teacher, candidates="batch")
    rows = [Message(text=f"{c} here", labels=[a], id=c) for c, a in ANSWERS.items()]
    agent.batch_act(agent.batch_observe(rows))
    gradient = agent.parameters.gradients.copy()
    rng = numpy.random.default_rng(0)
    values = agent.parameters.values
    for at in rng.choice(numpy.flatnonzero(gradient), 25, replace=False):
        step = 1e-2
        losses = []
        for sign in (1, -1):
            values[at] += sign * step
            agent.parameters.clear_gradients()
            agent.reset_metrics()
            agent.batch_act(agent.batch_observe(rows))
            losses.append(float(agent.counters.loss.numerator))
            values[at] -= sign * step
        assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(
            gradient[at], abs=0.02, rel=0.05
        )


def test_ranker_without_a_bi_encoder_says_what_to_write():
    encoder = registry.models.get("thincdialog.BagEncoder.v1")(width=8)
    with pytest.raises(ValueError, match=r"\[agent.model.encoder\]"):
        RankerAgent(encoder, loss=None)


def test_ranker_before_initialize_says_so():
    encoder = registry.models.get("thincdialog.BagEncoder.v1")(width=8)
    agent = registry.agents.get("thincdialog.Ranker.v1")(
        registry.models.get("thincdialog.BiEncoder.v1")(encoder)
    )
    with pytest.raises(ProtocolError, match="initialize"):
        answer(agent, "hello")


@pytest.mark.parametrize("text", ["", "xyzzy plugh", "\u200b", "😀" * 500])
def test_ranker_answers_anything(teacher, text):
    assert answer(build(teacher), text)["text"] in ANSWERS.values()


def test_ranker_learns_from_the_examples_that_have_labels():
    rows = [*EXAMPLES, {"text": "grey here"}]
    agent = build(IterableTeacher({"train": rows}).for_split("train", training=True))
    assert sorted(agent.fixed) == sorted(ANSWERS.values())
    without = IterableTeacher({"train": [{"text": "grey here"}]})
    with pytest.raises(DataError, match="no training example has a label"):
        build(without.for_split("train", training=True))


def test_ranker_knows_its_candidates_after_one_that_could_not_be_encoded(teacher, monkeypatch):
    agent = build(teacher)
    learn(agent, teacher)
    right = answer(agent, "red here", label_candidates=["go", "stop"])
    agent.forget_computed()
    with monkeypatch.context() as patch:
        patch.setattr(agent.text, "labels", lambda texts, limits: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            answer(agent, "red here", label_candidates=["go", "stop"])
    assert answer(agent, "red here", label_candidates=["go", "stop"]) == right
