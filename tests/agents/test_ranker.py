"""The ranker: what it learns from, what it answers with."""

import numpy as np
import pytest

from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import ConfigError, DataError, Message, ProtocolError

from . import colours
from .colours import answer, make, reply

ANSWERS = {"red": "stop", "green": "go", "amber": "wait", "blue": "swim"}
EXAMPLES = colours.examples(ANSWERS)


def bi_encoder(width=16):
    return make("models", "BiEncoder", make("models", "BagEncoder", width=width))


def build(rows=EXAMPLES, **options):
    return colours.build("Ranker", bi_encoder, rows, **options)


def trained(rows=EXAMPLES, **options):
    agent, teacher = build(rows, **options)
    colours.learn(agent, teacher, make("optimizers", "Adam.v1", 0.01))
    return agent


@pytest.mark.parametrize("candidates", ["batch", "fixed"])
def test_ranker_learns_and_answers_from_fixed_candidates(candidates):
    agent = trained(candidates=candidates)
    for colour, right in ANSWERS.items():
        found = reply(agent, f"{colour} here")
        assert found["text"] == right
        assert sorted(found["text_candidates"]) == sorted(ANSWERS.values())


def test_ranker_learns_from_inline_candidates():
    rows = [{**row, "label_candidates": sorted(ANSWERS.values())} for row in EXAMPLES]
    agent = trained(rows, candidates="inline")
    assert answer(agent, "red yonder", label_candidates=["go", "stop"]) == "stop"


def test_ranker_learns_the_words_of_the_vocabulary():
    agent = trained(candidates="vocab")
    assert set(ANSWERS.values()) | set(ANSWERS) <= set(agent.fixed)
    assert answer(agent, "green there") == "go"
    with pytest.raises(ConfigError, match="has no vocabulary"):
        hashes = make("tokenizers", "HashNgrams", n_rows=64)
        build(tokenizer=lambda: hashes, candidates="vocab")


def test_ranker_lists_in_one_batch_rank_as_alone():
    agent, _ = build()
    lists = [["go", "stop"], ["wait", "never seen", "go"], None, ["stop"]]
    messages = [
        Message(text=f"{colour} here", label_candidates=texts)
        for colour, texts in zip(ANSWERS, lists)
    ]
    together = agent.batch_act(messages)
    for message, texts, found in zip(messages, lists, together):
        assert sorted(found["text_candidates"]) == sorted(texts or ANSWERS.values())
        alone = agent.batch_act([message])[0]
        assert found["text_candidates"] == alone["text_candidates"]


def test_ranker_candidates_of_the_batch_are_distinct_texts():
    """Two examples with the same reply are not told from each other."""
    seen = []

    def loss(scores, targets, mask):
        seen.append((scores.shape, targets.tolist(), mask))
        return scores * 0, scores[:, 0] * 0

    agent, _ = build(loss=loss)
    agent.batch_act([Message(text="a", labels=[text]) for text in ("go", "stop", "go")])
    assert seen == [((3, 2), [0, 1, 0], None)]


@pytest.mark.parametrize("change", ["update", "with_weights", "evaluating", "load"])
def test_ranker_candidates_are_encoded_once_until_weights_change(change):
    agent, _ = build()
    calls = []
    encode = agent._vectors.encode
    agent._vectors.encode = lambda texts: calls.append(list(texts)) or encode(texts)
    answer(agent, "red here")
    answer(agent, "green here")
    assert calls == [agent.fixed]
    if change == "update":
        agent.batch_act([Message(text="red", labels=["stop"], id="0")])
        agent.update(make("optimizers", "SGD.v1", 0.1))
    elif change == "load":
        agent.weights[:] += 1
        agent.weights_changed()
    elif change == "evaluating":
        with agent.evaluating():
            answer(agent, "red here")
            answer(agent, "green here")
        assert len(calls) == 2
    else:
        before = reply(agent, "red here")
        with agent.with_weights(-agent.weights):
            assert reply(agent, "red here") != before
        assert len(calls) == 2 and reply(agent, "red here") == before
    answer(agent, "red here")
    assert len(calls) == (2 if change in ("update", "load") else 3)


def test_ranker_says_nothing_twice_in_a_chat():
    talker = build()[0].clone()
    said = []
    for _ in range(4):
        talker.observe(Message(text="red here", episode_done=False))
        found = talker.act()
        talker.self_observe(found)
        said.append(found["text"])
    assert sorted(said) == sorted(ANSWERS.values())


def test_ranker_label_that_is_no_candidate_is_a_data_error():
    wrong = [Message(text="red", labels=["fly"], id="7/0")]
    with pytest.raises(DataError, match="7/0 has the label 'fly', which is not among its fixed"):
        build(candidates="fixed")[0].batch_act(wrong)
    with pytest.raises(DataError, match='example 7/0 has no label_candidates.*= "batch"'):
        build(candidates="inline")[0].batch_act(wrong)


def test_ranker_fixed_candidates_are_of_a_file_or_the_most_frequent(tmp_path):
    path = tmp_path / "candidates.txt"
    path.write_text("go\nstop\nwait\nswim\nfly\ngo\n")
    assert build(fixed_candidates=str(path))[0].fixed == ["go", "stop", "wait", "swim", "fly"]
    rows = [{"text": "a", "labels": [text]} for text in ("x", "y", "y", "z", "z")]
    assert build(rows, max_fixed_candidates=2)[0].fixed == ["y", "z"]


def test_ranker_gradient_is_that_of_finite_differences():
    """The whole agent: text to vectors to scores to loss, against its weights."""
    agent, _ = build(candidates="batch")
    rows = [Message(text=f"{c} here", labels=[a], id=c) for c, a in ANSWERS.items()]
    agent.batch_act(rows)
    gradient = agent.parameters.gradients.copy()
    rng = np.random.default_rng(0)
    values = agent.weights
    for at in rng.choice(np.flatnonzero(gradient), 25, replace=False):
        step = 1e-2
        losses = []
        for sign in (1, -1):
            values[at] += sign * step
            agent.give_up()
            agent.batch_act(rows)
            losses.append(agent.gathered_loss() * len(rows))
            values[at] -= sign * step
        assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(
            gradient[at], abs=0.02, rel=0.05
        )


def test_ranker_misuse_says_what_to_do():
    with pytest.raises(ValueError, match=r"\[agent.model.encoder\]"):
        RankerAgent(make("models", "BagEncoder", width=8), loss=None)
    with pytest.raises(ProtocolError, match="initialize"):
        answer(make("agents", "Ranker", bi_encoder()), "hello")
    with pytest.raises(ValueError, match="max_fixed_candidates = 0"):
        build(max_fixed_candidates=0)


@pytest.mark.parametrize("text", ["", "xyzzy plugh", "\u200b", "😀" * 500])
def test_ranker_answers_anything(text):
    assert answer(build()[0], text) in ANSWERS.values()


def test_ranker_learns_from_the_examples_that_have_labels():
    agent, _ = build([*EXAMPLES, {"text": "grey here"}])
    assert sorted(agent.fixed) == sorted(ANSWERS.values())
    with pytest.raises(DataError, match="no training example has a label"):
        build([{"text": "grey here"}])


def test_ranker_knows_its_candidates_after_one_that_could_not_be_encoded(monkeypatch):
    agent = trained()
    right = reply(agent, "red here", label_candidates=["go", "stop"])
    agent.weights_changed()
    with monkeypatch.context() as patch:
        patch.setattr(agent.text, "labels", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reply(agent, "red here", label_candidates=["go", "stop"])
    assert reply(agent, "red here", label_candidates=["go", "stop"]) == right
