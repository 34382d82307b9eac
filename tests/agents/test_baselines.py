import random

import pytest

from thincdialog.agents.fixed_response import FixedResponseAgent
from thincdialog.agents.most_frequent import MostFrequentAgent
from thincdialog.agents.random_candidate import RandomCandidateAgent
from thincdialog.agents.repeat_label import RepeatLabelAgent
from thincdialog.agents.retrieval import RetrievalAgent
from thincdialog.batchers import Fixed
from thincdialog.errors import ModelError
from thincdialog.messages import Message
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.metrics.ranking import Ranking
from thincdialog.registry import registry
from thincdialog.teachers.iterable import IterableTeacher
from thincdialog.worlds import BatchWorld

TRAIN = [
    [("hi there", "hello"), ("how are you", "fine"), ("bye now", "bye")],
    [("hi", "hello"), ("are you a robot", "no")],
    [("good bye", "bye")],
    [("hi you", "hello")],
]
NAMES = ["FixedResponse", "MostFrequent", "RandomCandidate", "RepeatLabel", "Retrieval"]


def make(name):
    arguments = {"text": "what?"} if name == "FixedResponse" else {}
    return registry.agents.get(f"thincdialog.{name}.v1")(**arguments)


def teacher(split="train", **arguments):
    task = IterableTeacher({"train": TRAIN, "test": TRAIN})
    return task.for_split(split, training=split == "train", **arguments)


def trained(name, **arguments):
    agent = make(name)
    agent.initialize(teacher(), **arguments)
    return agent


def ask(agent, *messages):
    return list(agent.batch_act([Message(each) for each in messages]))


def test_repeat_label_says_the_label():
    agent = trained("RepeatLabel")
    told, ranked, silent = ask(
        agent,
        {"text": "a", "labels": ["x", "y"]},
        {"text": "a", "eval_labels": ["x"], "label_candidates": ["w", "x", "z"]},
        {"text": "a", "label_candidates": ["w"]},
    )
    assert told == {"text": "x", "text_candidates": ["x", "y"]}
    assert ranked == {"text": "x", "text_candidates": ["x", "w", "z"]}
    assert silent == {}


def test_fixed_response_says_its_text():
    assert ask(FixedResponseAgent("what?"), {"text": "a"}, {"text": "b"}) == [{"text": "what?"}] * 2


def test_most_frequent_ranks_by_training_labels():
    free, among = ask(
        trained("MostFrequent"),
        {"text": "a"},
        {"text": "a", "label_candidates": ["new", "no", "bye", "other", "fine"]},
    )
    assert free["text_candidates"] == ["hello", "bye", "fine", "no"]
    assert among["text_candidates"] == ["bye", "no", "fine", "new", "other"]
    assert (free["text"], among["text"]) == ("hello", "bye")


def test_most_frequent_counts_every_label():
    agent = MostFrequentAgent()
    data = [[{"text": "a", "labels": ["x", "y"]}], [{"text": "b", "labels": "y"}]]
    agent.initialize(IterableTeacher({"train": data}).for_split("train", training=True))
    assert agent.counts == {"x": 1, "y": 2}


def test_random_candidate_depends_on_the_example_alone():
    candidates = [str(i) for i in range(50)]
    questions = [{"text": "a", "id": f"{i}/0", "label_candidates": candidates} for i in range(40)]
    agent = trained("RandomCandidate", seed=3)
    replies = {question["id"]: reply for question, reply in zip(questions, ask(agent, *questions))}
    random.shuffle(questions)
    again = trained("RandomCandidate", seed=3)
    assert [ask(again, question)[0] for question in questions] == [
        replies[question["id"]] for question in questions
    ]
    for reply in replies.values():
        assert sorted(reply["text_candidates"]) == sorted(candidates)
    assert len({reply["text"] for reply in replies.values()}) > 15
    assert ask(trained("RandomCandidate", seed=4), *questions) != ask(agent, *questions)


def test_random_candidate_without_candidates_draws_training_labels():
    (reply,) = ask(trained("RandomCandidate"), {"text": "a"})
    assert sorted(reply["text_candidates"]) == ["bye", "fine", "hello", "no"]
    assert ask(RandomCandidateAgent(), {"text": "a"}) == [{}]


@pytest.mark.parametrize("name", NAMES)
def test_baseline_survives_the_disk(tmp_path, name):
    agent = trained(name, seed=5)
    agent.to_disk(tmp_path)
    loaded = make(name)
    loaded.from_disk(tmp_path)
    questions = [
        {"text": "how are you", "id": "1/0"},
        {"text": "bye", "id": "2/0", "label_candidates": ["x", "bye", "hello"]},
        {"text": "", "id": "3/0", "eval_labels": ["y"]},
    ]
    assert ask(loaded, *questions) == ask(agent, *questions)


@pytest.mark.parametrize("name", ["MostFrequent", "RandomCandidate", "Retrieval"])
@pytest.mark.parametrize("content", ["", "[]", "{}", '{"counts": 3, "seed": "x", "n_texts": []}'])
def test_baseline_damaged_on_disk_is_an_error(tmp_path, name, content):
    trained(name).to_disk(tmp_path)
    (tmp_path / "agent.json").write_text(content)
    with pytest.raises(ModelError, match="agent.json"):
        make(name).from_disk(tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_candidates", [0, 3])
def test_baseline_scores_do_not_depend_on_batches_or_copies(name, n_candidates):
    agent = trained(name)
    reports = []
    for size in (1, 4, 100):
        test = teacher("test", n_candidates=n_candidates)
        test.set_metrics([Accuracy(), Ranking([1, 2])])
        with BatchWorld(test, agent, Fixed(size)) as world:
            while not world.epoch_done():
                world.parley()
            reports.append({name: metric.value() for name, metric in world.report().items()})
    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["examples"] == 7
    if name == "RepeatLabel":
        assert reports[0]["accuracy"] == reports[0]["hits@1"] == 1.0
    if name == "MostFrequent" and not n_candidates:
        assert reports[0]["accuracy"] == 3 / 7 and reports[0]["hits@2"] == 5 / 7


def test_baseline_act_answers_like_batch_act():
    agent = RetrievalAgent(history_size=1)
    agent.initialize(teacher())
    agent.observe(Message(text="good bye", agent="user"))
    assert agent.act()["text"] == "bye"
    assert isinstance(RepeatLabelAgent().clone(), RepeatLabelAgent)
