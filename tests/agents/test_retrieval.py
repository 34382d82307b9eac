import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.examples import quietly_train
from thincdialog.agents.retrieval import RetrievalAgent
from thincdialog.api import evaluate_in_detail
from thincdialog.errors import ModelError
from thincdialog.evaluation.evaluate_agent import evaluate_agent
from thincdialog.messages import PARTNER, SELF, SILENCE, Message
from thincdialog.metrics.ranking import Ranking
from thincdialog.mutators.flatten import Flatten
from thincdialog.registry import registry
from thincdialog.teachers.iterable import IterableTeacher
from thincdialog.worlds import PartnerWorld

WORDS = "red green blue the a of big".split()
TEXTS = st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=6).map(" ".join)
PAIRS = [
    ("the red car", "a fast one"),
    ("the green tree", "it is big"),
    ("the blue sea of the south", "deep blue"),
    ("a big big house", "the red roof"),
]


def trained(pairs=PAIRS, **settings):
    agent = RetrievalAgent(**settings)
    agent.initialize(IterableTeacher({"train": pairs}).for_split("train", training=True))
    return agent


def ask(agent, **message):
    return agent.batch_act([Message(message)])[0]


def reference(method, query, document, corpus):
    """Compute similarities by the textbook formulas."""
    n = len(corpus)
    found = Counter(word for text in corpus for word in set(text.split()))
    q, d = Counter(query.split()), Counter(document.split())
    if method == "bm25":
        mean = sum(len(text.split()) for text in corpus) / n
        norm = 1.2 * (1 - 0.75 + 0.75 * sum(d.values()) / mean)
        return sum(
            count
            * math.log(1 + (n - found[word] + 0.5) / (found[word] + 0.5))
            * (d[word] * 2.2 / (d[word] + norm))
            for word, count in q.items()
        )
    idf = {word: math.log((1 + n) / (1 + found[word])) + 1 for word in {*q, *d}}
    dot = sum(q[word] * d[word] * idf[word] ** 2 for word in q)
    size = math.prod(math.sqrt(sum((c[word] * idf[word]) ** 2 for word in c)) for c in (q, d))
    return dot / size if size else 0.0


def test_retrieval_learns_the_same_from_a_stream():
    expected, agent = trained(), RetrievalAgent()
    arrays = [*expected.index, expected.reply_of]
    teacher = IterableTeacher({"train": lambda: PAIRS}, streaming=True, shuffle_window=3)
    for _ in range(2):  # Nothing is counted twice.
        agent.initialize(teacher.for_split("train", training=True))
        assert agent.state() == expected.state()
        assert (agent.frequencies == expected.frequencies).all()
        assert all(map(np.array_equal, [*agent.index, agent.reply_of], arrays))


@pytest.mark.parametrize("method", ["tfidf", "bm25"])
@given(query=TEXTS, candidates=st.lists(TEXTS, min_size=1, max_size=5, unique=True))
def test_retrieval_ranks_candidates_by_the_textbook(method, query, candidates):
    corpus = [text for pair in PAIRS for text in pair]
    agent = trained(method=method, block_repeats=False)
    ranked = ask(agent, text=query, label_candidates=candidates)["text_candidates"]
    assert sorted(ranked) == sorted(candidates)
    scores = {text: reference(method, query, text, corpus) for text in candidates}
    for better, worse in zip(ranked, ranked[1:]):
        assert scores[better] > scores[worse] - 1e-6


@pytest.mark.parametrize("method", ["tfidf", "bm25"])
@given(query=TEXTS)
def test_retrieval_finds_the_nearest_training_context(method, query):
    corpus = [text for pair in PAIRS for text in pair]
    reply = ask(trained(method=method), text=query)["text"]
    scores = [reference(method, query, context, corpus) for context, _ in PAIRS]
    if max(scores) == 0.0:
        assert reply == PAIRS[0][1]
    else:
        chosen = [label for _, label in PAIRS].index(reply)
        assert scores[chosen] > max(scores) - 1e-6


def test_retrieval_uses_the_history_it_is_given():
    agent = trained(history_size=2)
    context = [(PARTNER, "green"), (SELF, "blue")]
    candidates = ["a green one", "a blue one", "a red one"]
    asked = {"text": "?", "context": context, "label_candidates": candidates}
    assert ask(agent, **asked)["text"] == "a blue one"
    assert ask(trained(history_size=1), **asked)["text"] == "a green one"
    assert ask(agent, text=SILENCE, context=context)["text"] == "deep blue"


def test_retrieval_mixes_rows_with_and_without_candidates():
    agent = trained(block_repeats=False)
    messages = [
        Message(text="red", label_candidates=["big", "red"]),
        Message(text="green tree"),
        Message(text="", label_candidates=["x", "y"]),
    ]
    replies = agent.batch_act(messages)
    assert [reply["text"] for reply in replies] == ["red", "it is big", "x"]
    assert list(agent.batch_act([])) == []


def test_retrieval_without_training_data_says_nothing():
    assert ask(RetrievalAgent(), text="hi") == {}
    assert ask(trained([{"text": "no label"}]), text="label") == {}


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"method": "lsa"}, "method = 'lsa'"), ({"k1": -1.0}, "k1 = -1.0"), ({"b": 1.5}, "b = 1.5"),
        ({"ngrams": 0}, "ngrams = 0"), ({"history_size": 0}, "history_size = 0"),
    ],
)  # fmt: skip
def test_retrieval_settings_out_of_range_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        RetrievalAgent(**settings)


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-99], lambda data: b"x" * 99]
)
def test_retrieval_damaged_on_disk_is_an_error(tmp_path, damage):
    trained().to_disk(tmp_path)
    path = tmp_path / "retrieval.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match="retrieval.npz  is damaged"):
        RetrievalAgent().from_disk(tmp_path)
    path.unlink()
    with pytest.raises(ModelError, match="retrieval.npz  cannot be read"):
        RetrievalAgent().from_disk(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, speaker, least", [("sgd", "system", 0.208), ("self_dialogue", "both", 0.104)]
)
def test_retrieval_reaches_the_published_baselines(data, name, speaker, least):
    task = registry.teachers.get("thincdialog.Conversations.v1")(
        train=str(data / name / "train.jsonl.gz"),
        test=str(data / name / "test.jsonl.gz"),
        label_speaker=speaker,
        mutators=[Flatten(context_length=2)],
    )
    agent = RetrievalAgent()
    agent.initialize(task.for_split("train", training=True))
    test = task.for_split("test", n_candidates=100, max_examples=2000)
    test.set_metrics([Ranking([1])])
    assert evaluate_agent(agent, test, PartnerWorld)["hits@1"] >= least


def test_retrieval_counts_labels_outside_their_candidates_as_wrong(tmp_path):
    line = "text:q {}\tlabels:a {}\tlabel_candidates:a 0|a 1\tepisode_done:True\n"
    (tmp_path / "data.txt").write_text("".join(line.format(n % 2, n) for n in range(4)))
    config = f"""
[tasks.t]
@teachers = "thincdialog.ParlAIText.v1"
train = "{tmp_path / "data.txt"}"
dev = ${{tasks.t.train}}

[agent]
@agents = "thincdialog.Retrieval.v1"
"""
    quietly_train(config, tmp_path / "out")
    found = evaluate_in_detail(tmp_path / "out" / "model-best", split="dev")
    assert found.scores["examples"] == 4 and found.scores["accuracy"] == 0.5
