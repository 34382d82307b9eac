"""Detailed evaluation: every reply, in the order of the data, in any world."""

import json
from collections import Counter
from itertools import islice
from types import SimpleNamespace

import pytest

from thincdialog.api import Agent, Alone, IterableTeacher, Message, registry
from thincdialog.batchers import Batchsort, Fixed
from thincdialog.evaluation.evaluate import agent_in_detail
from thincdialog.evaluation.evaluate_agent import evaluate_agent
from thincdialog.metrics.label_sets import LabelSets

METRICS = ("Accuracy", "F1", "Ranking", "ClassF1")
WORLDS = [
    registry.worlds.get("thincdialog.PartnerWorld.v1")(),
    registry.worlds.get("thincdialog.BatchWorld.v1")(Fixed(3)),
    registry.worlds.get("thincdialog.DynamicBatchWorld.v1")(Batchsort(4)),
]


def episodes(ids=True):
    found = []
    for number in range(9):
        episode = []
        for turn in range(1 + number % 3):
            text = "say " * (number * 7 % 5) + "abcdef"[(number + turn) % 6]
            message = {"text": text, "labels": [text[-1]], "label_candidates": list("abcdef")}
            if ids:
                message["id"] = f"talk{number}-{turn}"
            episode.append(message)
        found.append(episode)
    return found


def teacher_of(data, mutators=None):
    teacher = IterableTeacher({"test": data}, mutators=mutators).for_split("test")
    metrics = [registry.metrics.get(f"thincdialog.{name}.v1")() for name in METRICS]
    teacher.set_metrics([metric.fresh() for metric in metrics])
    return teacher, metrics


def in_detail(teacher, metrics, world):
    agent = registry.agents.get("thincdialog.RandomCandidate.v1")()
    parts = SimpleNamespace(
        agent=agent, metrics=metrics, make_evaluation_world=world, runner=Alone()
    )
    found = agent_in_detail(parts, teacher, "test", 50)
    assert found.scores == evaluate_agent(agent, teacher, world)
    return found


@pytest.mark.parametrize("world", WORLDS, ids=["partner", "batch", "dynamic"])
def test_detail_rows_and_conversations_are_those_of_the_data(world):
    flat = [registry.mutators.get("thincdialog.Flatten.v1")()]
    for ids, mutators in ((True, None), (False, None), (False, flat)):
        data = episodes(ids)
        found = in_detail(*teacher_of(data, mutators), world)
        rows = found.predictions[""]
        names = [
            message.get("id", f"{number}/{turn}")
            for number, episode in enumerate(data)
            for turn, message in enumerate(episode)
        ]
        assert [row.id for row in rows] == names
        assert [len(row.labels) for row in rows] == [1] * 18
        conversations = list(dict.fromkeys(row.conversation for row in rows))
        sizes = [[row.conversation for row in rows].count(name) for name in conversations]
        assert sizes == [1, 2, 3] * 3
        assert (found.drawn, found.n_drawn) == ("conversations", 9)
        assert {row.n_candidates for row in rows} == {6}


@pytest.mark.parametrize("flatten", [False, True])
def test_detail_both_sides_of_a_conversation_are_drawn_together(flatten, tmp_path):
    turns = ({"speaker": "AB"[n % 2], "text": f"turn {n}"} for n in range(24))
    rows = [{"id": f"talk {n}", "turns": list(islice(turns, 4))} for n in range(6)]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    files = {"train": None, "dev": None, "test": str(tmp_path / "test.jsonl")}
    mutators = [registry.mutators.get("thincdialog.Flatten.v1")()] if flatten else None
    make = registry.teachers.get("thincdialog.Conversations.v1")
    teacher = make(**files, label_speaker="both", mutators=mutators).for_split("test")
    metrics = [registry.metrics.get("thincdialog.Accuracy.v1")()]
    teacher.set_metrics([metric.fresh() for metric in metrics])
    found = in_detail(teacher, metrics, WORLDS[0])
    named = Counter(row.conversation for row in found.predictions[""])
    assert named == {f"talk {n}": 4 for n in range(6)}
    assert (found.drawn, found.n_drawn) == ("conversations", 6)


def test_detail_single_turns_are_drawn_one_by_one_whatever_their_ids():
    data = [[{**episode[0], "id": f"en/{n}"}] for n, episode in enumerate(episodes())]
    found = in_detail(*teacher_of(data), WORLDS[1])
    assert (found.drawn, found.n_drawn) == ("examples", 9)
    assert {"accuracy", "f1", "hits@1", "mrr", "macro_f1"} <= set(found.intervals)
    assert "examples" not in found.intervals
    for name, (low, high) in found.intervals.items():
        assert 0 <= low < high <= 1 and low <= found.scores[name] <= high


def test_detail_examples_without_labels_are_kept_and_not_scored():
    data = episodes()
    for episode in data[::2]:
        del episode[0]["labels"]
    found = in_detail(*teacher_of(data), WORLDS[0])
    assert found.scores["examples"] == len(found.predictions[""]) == 18
    assert found.predictions[""][0].as_json(found.metrics)["metrics"] == {}
    assert sum("right" in row.as_json([]) for row in found.predictions[""]) == 13


class Letters(Agent):
    """An agent that predicts the words of the text as labels."""

    has_label_sets = True

    def act(self):
        labels = self.observation["text"].split()
        return Message(text=" ".join(labels), predicted_labels=labels, classes=["a", "b"])


@pytest.mark.parametrize("world", WORLDS)
def test_detail_of_label_sets_scores_examples_with_empty_sets(world):
    rows = [("a b", ["b", "a"]), ("a", []), ("", []), ("b", ["a"]), ("a", None)]
    episode = [{"text": text, "labels": labels} for text, labels in rows]
    del episode[4]["labels"]  # labels not known: answered, but not scored
    teacher = IterableTeacher({"test": [episode[:2], episode[2:]]}).for_split("test")
    teacher.set_metrics([LabelSets()])
    parts = SimpleNamespace(
        agent=Letters(), metrics=[LabelSets()], make_evaluation_world=world, runner=Alone()
    )
    found = agent_in_detail(parts, teacher, "test", 50)
    assert (found.scores["examples"], found.scores["exact_match"]) == (5, 0.5)
    assert (found.scores["micro_precision"], found.scores["micro_recall"]) == (2 / 4, 2 / 3)
    right = [row.as_json(found.metrics).get("right") for row in found.predictions[""]]
    assert right == [True, False, True, False, None]
    assert found.predictions[""][0].as_json([])["reply"] == ["a", "b"]
    assert found.confusion().by_class()["a"] == (1 / 2, 1 / 2, 1 / 2, 2)
    assert found.confusion().by_class()["b"] == (1 / 2, 1, 2 / 3, 1)
