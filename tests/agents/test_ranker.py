"""The ranker: its training candidates and its answers."""

import json
from collections import Counter

import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS
from tests.training.examples import REPLIES, with_agent
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import ConfigError, DataError, Message, ProtocolError
from thincdialog.data.text_encoder import counting
from thincdialog.examples.batch import Batch

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
    """Two examples with the same reply are not negatives of each other."""
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
    encode = agent._encode_candidates
    agent._encode_candidates = lambda texts: calls.append(list(texts)) or encode(texts)
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


def test_ranker_that_loads_a_saved_ranker_answers_as_that_one(tmp_path):
    agents = {"fresh": build()[0], "trained": trained()}
    question = [Message(text="red here", episode_done=True, label_candidates=["go", "wait"])]
    scores = {}
    for name, agent in agents.items():
        (tmp_path / name).mkdir()
        agent.to_disk(tmp_path / name)
        scores[name] = agent.batch_act(question)[0]["candidate_scores"]
    agent = agents["fresh"]
    for name in ("trained", "fresh"):
        agent.from_disk(tmp_path / name, tokenizer=make("tokenizers", "Words"))
        assert agent.batch_act(question)[0]["candidate_scores"] == scores[name]
    assert scores["fresh"] != scores["trained"]


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
    found = "7/0 has the label 'fly', which is not among its fixed candidates"
    with pytest.raises(DataError, match=f"{found}. Correct the data"):
        build(candidates="fixed")[0].batch_act(wrong)
    with pytest.raises(DataError, match=f"{found}. Raise max_fixed_candidates"):
        build(candidates="fixed", max_fixed_candidates=2)[0].batch_act(wrong)
    with pytest.raises(DataError, match='example 7/0 has no label_candidates.*= "batch"'):
        build(candidates="inline")[0].batch_act(wrong)


LISTS = {"red": ["stop", "go"], "green": ["go", "swim"], "blue": ["swim", "wait", "go"]}
ROWS = [
    Message(id=colour, text=f"{colour} here", label_candidates=texts, eval_labels=[ANSWERS[colour]])
    for colour, texts in LISTS.items()
]


@pytest.mark.parametrize(
    "source, expected",
    [
        (None, list(map(set, LISTS.values()))),
        ("inline", list(map(set, LISTS.values()))),
        ("batch", [{"stop", "go", "swim"}] * 3),
        ("batch_all", [{"stop", "go", "swim", "wait"}] * 3),
        ("fixed", [set(ANSWERS.values())] * 3),
        ("vocab", None),
    ],
)
def test_ranker_evaluates_among_its_eval_candidates(source, expected):
    agent, _ = build(eval_candidates=source)
    if source == "vocab":
        expected = [set(agent.tokenizer.vocabulary.tokens)] * 3
        assert {"red", "here", "stop"} <= expected[0]
    found = [set(each["text_candidates"]) for each in agent.batch_act(ROWS)]
    assert found == expected
    # A chat still uses the fixed candidates or those of its message, also in the same batch.
    talk = [Message(text="red"), Message(text="red", label_candidates=["a", "b"])]
    asked, listed = agent.batch_act([*ROWS, *talk])[3:]
    assert set(asked["text_candidates"]) == set(ANSWERS.values())
    assert set(listed["text_candidates"]) == {"a", "b"}


@pytest.mark.parametrize("source", [None, "inline", "batch", "batch_all", "fixed", "vocab"])
def test_ranker_scores_candidates_alike_wherever_they_come_from(source):
    agent, _ = build(eval_candidates=source, block_repeats=False)
    for message, found in zip(ROWS, agent.batch_act(ROWS)):
        alone = reply(agent, message["text"], label_candidates=found["text_candidates"])
        assert alone["text_candidates"] == found["text_candidates"]
        assert alone["candidate_scores"] == found["candidate_scores"]


@pytest.mark.parametrize("source", ["inline", "batch_all"])
def test_ranker_evaluation_without_lists_where_it_needs_them_is_a_data_error(source):
    agent, _ = build(eval_candidates=source)
    row = Message(id="7/0", text="red", eval_labels=["stop"])
    with pytest.raises(DataError, match='example 7/0 has no label_candidates.*= "fixed"'):
        agent.batch_act([row])
    assert answer(agent, "red") in ANSWERS.values()


def test_ranker_refuses_an_empty_list_of_candidates():
    with pytest.raises(DataError, match="the message has an empty list of label_candidates"):
        answer(build()[0], "red", label_candidates=[])


def test_ranker_learns_from_the_candidates_of_the_whole_batch():
    seen = []

    def loss(scores, targets, mask):
        seen.append((scores.shape, targets.tolist(), mask))
        return scores * 0, scores[:, 0] * 0

    agent, _ = build(loss=loss, candidates="batch_all")
    lists = [["go", "stop"], ["wait", "go"]]
    rows = [Message(text="a", labels=[texts[-1]], label_candidates=texts) for texts in lists]
    agent.batch_act(rows)
    assert seen == [((2, 3), [1, 0], None)]
    rows = [{**row, "label_candidates": sorted(ANSWERS.values())} for row in EXAMPLES]
    assert answer(trained(rows, candidates="batch_all"), "green there") == "go"


@pytest.mark.parametrize("candidates", ["inline", "batch_all", "fixed"])
def test_ranker_ignores_bad_candidates_if_configured(candidates):
    """The gradient is the one without the bad example."""
    texts = ["go", "stop"]
    good = [Message(id=t, text=t, labels=[t], label_candidates=texts) for t in texts]
    bad = Message(id="bad", text="a", labels=["fly"], label_candidates=["go", "wait"])
    agents = [build(candidates=candidates, ignore_bad_candidates=True)[0] for _ in range(2)]
    for agent, rows in zip(agents, ([good[0], bad, good[1]], good)):
        agent.batch_act(rows)
    assert (agents[0].parameters.gradients == agents[1].parameters.gradients).all()
    report = agents[0].update(make("optimizers", "SGD.v1", 0.1))
    assert (report.examples, report.counts["ignored_examples"]) == (2, 1)
    assert report.counts["contexts"] == 2
    agents[0].batch_act([bad])
    assert agents[0].update(make("optimizers", "SGD.v1", 0.1)).examples == 0


@pytest.mark.parametrize("candidates", ["batch", "inline"])
def test_ranker_reads_a_batch_without_side_effects(candidates):
    """The next batch can be read while this one is trained on."""
    agent, _ = build(candidates=candidates, ignore_bad_candidates=True)
    texts = ["go", "stop"]
    rows = [Message(text=t, labels=[t], label_candidates=texts) for t in (*texts, "fly")]
    agent.batch_act(rows)
    before = agent.report()
    counts = Counter()
    for _ in range(2):
        agent.read(Batch.of(rows))
        with counting(counts):
            agent.read(Batch.of(rows[1:]))
    assert agent.report() == before
    left_out = candidates == "inline"
    assert (counts["contexts"], counts["ignored_examples"]) == ((2, 2) if left_out else (4, 0))


@pytest.mark.parametrize("ignore", [False, True])
def test_ranker_bad_candidates_are_an_error_unless_ignored(tmp_path, ignore):
    lines = [
        f"text:{text}\tlabels:{label}\tlabel_candidates:go|stop\tepisode_done:True"
        for text, label in [("red", "stop"), ("green", "go"), ("blue", "swim")]
    ]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    config = f"""
[tasks.a]
@teachers = "thincdialog.ParlAIText.v1"
train = "{tmp_path}/a.txt"
dev = "{tmp_path}/a.txt"
{with_agent(REPLIES, 'candidates = "inline"', f"ignore_bad_candidates = {str(ignore).lower()}")}
[training]
max_epochs = 2
n_samples = 0
"""
    if not ignore:
        with pytest.raises(DataError, match="a.txt:3  the label 'swim' is not among the 2 label_c"):
            colours.run(config)
        return
    result = colours.run(config, output=tmp_path / "out")
    assert result.scores["dev"]["examples"] == 3 and result.scores["dev"]["accuracy"] <= 2 / 3
    lines = (tmp_path / "out" / "log.jsonl").read_text().splitlines()
    rows = list(map(json.loads, lines))
    assert [row["ignored_examples"] for row in rows if row.get("ignored_examples")] == [1, 1]


def test_ranker_fixed_candidates_are_of_a_file_or_the_most_frequent(tmp_path):
    path = tmp_path / "candidates.txt"
    path.write_text("go\nstop\nwait\nswim\nfly\ngo\n")
    assert build(fixed_candidates=str(path))[0].fixed == ["go", "stop", "wait", "swim", "fly"]
    rows = [{"text": "a", "labels": [text]} for text in ("x", "y", "y", "z", "z")]
    assert build(rows, max_fixed_candidates=2)[0].fixed == ["y", "z"]


def test_ranker_gradient_is_that_of_finite_differences():
    """Checks the whole agent, from text to vectors to scores to loss, for each of its weights."""
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


@EACH_OPS
def test_ranker_answers_in_a_batch_as_alone(ops):
    """Text, scores and probabilities are equal to the last digit, also for near ties."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefgh"), size=rng.integers(1, 9))) for _ in range(400)]
    rows = [{"text": text, "labels": [label]} for text, label in zip(texts[:200], texts[200:])]
    encoder = make("models", "BagEncoder", width=48, depth=2)
    agent = make("agents", "Ranker", make("models", "BiEncoder", encoder))
    agent.initialize(colours.teacher_of(rows), tokenizer=make("tokenizers", "Words"))
    asked = [Message(text=row["text"], episode_done=True) for row in rows[:50]]
    listed = [Message(each, label_candidates=texts[n : n + 30]) for n, each in enumerate(asked)]
    for messages in (asked, listed):
        together = agent.batch_act(messages)
        alone = [reply for message in messages for reply in agent.batch_act([message])]
        assert list(together) == alone
