"""Mixtures as teachers: reports, files, and tasks that cannot be mixed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.talk import NAMES, SIZES, episodes, make_teacher, mix, rounds, whole_batches
from tests.training.examples import RANKER
from thincdialog.api import Experiment
from thincdialog.batchers import Fixed
from thincdialog.errors import ConfigError, DataError, ProtocolError
from thincdialog.evaluation.evaluate_agent import evaluate_agent
from thincdialog.messages import Message
from thincdialog.metrics import merge_reports, report_values
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.teachers import IterableTeacher, MultiTask, mix_tasks
from thincdialog.teachers.text_formats import LabelledText


def test_multi_task_with_a_weight_of_zero_is_left_out():
    mixture = mix([[1] * 3, [1] * 4, [1] * 5], [1, 0, 1])
    assert list(mixture.tasks) == ["a", "c"] and mixture.n_examples == 8
    assert {name[0] for name in rounds([mixture])} == {"a", "c"}


@settings(max_examples=30)
@given(st.lists(SIZES, min_size=2, max_size=3), st.integers(1, 5), st.booleans())
def test_multi_task_reports_each_task_macro_and_micro(many_sizes, n_copies, flat):
    mixture = mix(many_sizes, training=False, flat=flat)
    metric = Accuracy()
    mixture.set_metrics([metric])
    # Replies to episodes with even numbers are right.
    if flat:
        mixture.set_batches(Fixed(n_copies))
        while not mixture.epoch_done():
            batch = mixture.batch_act()
            mixture.batch_observe([reply_to(row) for row in batch])
    else:
        for copy in [mixture.clone() for _ in range(n_copies)]:
            while not copy.epoch_done():
                copy.observe(reply_to(copy.act()))
    right, n_all = {}, {}
    for task, each in zip(NAMES, many_sizes):
        right[task], n_all[task] = sum(each[::2]), sum(each)
    values = {name: metric.value() for name, metric in mixture.report().items()}
    shares = {task: right[task] / n_all[task] for task in n_all}
    expected = {
        "examples": sum(n_all.values()),
        "accuracy": sum(right.values()) / sum(n_all.values()),
        "macro/accuracy": sum(shares.values()) / len(shares),
        **{f"{task}/examples": n for task, n in n_all.items()},
        **{f"{task}/accuracy": share for task, share in shares.items()},
    }
    assert values == pytest.approx(expected)
    report = mixture.report()
    assert merge_reports(report, report)["macro/accuracy"].value() == values["macro/accuracy"]
    mixture.reset_metrics()
    assert mixture.report()["a/examples"].value() == 0
    assert metric.n_examples == 0  # Each task has its own copy.


def reply_to(message):
    episode = message["id"].split("/")[1]
    return Message(text=f"label {episode}" if int(episode) % 2 == 0 else "wrong")


def test_multi_task_messages_only_change_their_id():
    tasks = {"a": make_teacher([2]), "b": make_teacher([1])}
    mixture = mix_tasks(tasks)
    alone = {f"{name}/{m['id']}": m for name, task in tasks.items() for m in task.examples()}
    said = list(mixture.examples())
    assert [{**alone[m["id"]], "id": m["id"]} for m in said] == said
    assert mixture.n_examples == 3 and mixture.n_episodes == 2
    assert list(mixture.texts()) == [*tasks["a"].texts(), *tasks["b"].texts()]
    # A mixture does not move the positions of its tasks.
    rounds([mixture])
    assert mixture.epoch_done() and not tasks["a"].epoch_done()
    assert len(rounds([tasks["a"]])) == 2
    assert mixture.report()["examples"].value() == 3


def test_multi_task_draws_the_candidates_of_each_task():
    made = {name: IterableTeacher({"dev": episodes([1] * 12, name)}) for name in "ab"}
    tasks = {name: task.for_split("dev", n_candidates=4) for name, task in made.items()}
    mixture = mix_tasks(tasks)
    mixture.set_batches(Fixed(7))
    rows = (row for batch in whole_batches(mixture) for row in batch)
    assert {row["id"]: row["label_candidates"] for row in rows} == {
        f"{name}/{m['id']}": m["label_candidates"]
        for name, task in tasks.items()
        for m in task.examples()
    }


def test_multi_task_with_a_task_of_several_turns_has_no_batches():
    mixture = mix([[1, 1], [1, 2]])
    assert not mixture.is_single_turn
    with pytest.raises(ProtocolError, match=r"a\+b.set_batches\(\) needs episodes of a single"):
        mixture.set_batches(Fixed(2))
    with pytest.raises(ProtocolError, match="call it on each of the tasks"):
        mixture.for_split("train")


def test_multi_task_files_are_those_of_its_tasks(tmp_path):
    tasks = {}
    for name in "ab":
        path = tmp_path / f"{name}.jsonl"
        path.write_text('{"text": "hi", "label": "x"}\n', encoding="utf8")
        tasks[name] = LabelledText(train=str(path))
    mixture = mix_tasks({name: task.for_split("train") for name, task in tasks.items()})
    assert mixture.splits == ["train"]
    assert mixture.files("train") == [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    mixture.check_sources()
    (tmp_path / "b.jsonl").unlink()
    with pytest.raises(DataError, match="b.jsonl"):
        mixture.check_sources()


def test_multi_task_of_a_mixture_is_refused():
    with pytest.raises(ValueError, match="the task 'b' is a mixture itself: mix all tasks at once"):
        MultiTask({"a": make_teacher([1]), "b": mix([[1], [1]])})


def test_mix_tasks_of_one_task_is_that_task():
    task = make_teacher([1, 2])
    assert mix_tasks({"a": task}) is task and mix_tasks({"a": task}, weights={"a": 2}) is task
    assert isinstance(mix([[1], [1]]), MultiTask)


@pytest.mark.parametrize(
    "weights, problem",
    [
        ({"news": 1, "chta": 1}, r"no task 'chta' - did you mean 'chat'\?"),
        ({"news": 1}, "no weight for the task 'chat' - add: chat = 1"),
        ({"news": 1, "chat": -1}, "'chat' is -1 - give a number, 0 or more"),
        ({"news": 1, "chat": float("nan")}, "'chat' is nan"),
        ({"news": 0, "chat": 0}, "are all 0"),
    ],
)
def test_mix_tasks_invalid_weights(weights, problem):
    tasks = {"news": make_teacher([1]), "chat": make_teacher([1])}
    with pytest.raises(ConfigError, match=problem):
        mix_tasks(tasks, weights=weights)


def test_mix_tasks_other_mistakes():
    tasks = {"news": make_teacher([1]), "macro": make_teacher([1])}
    with pytest.raises(ConfigError, match="the name that reports use"):
        mix_tasks(tasks)
    with pytest.raises(ConfigError, match="'unit' is 'word' - choose one of: episodes"):
        mix_tasks({"a": make_teacher([1])}, unit="word")
    with pytest.raises(ConfigError, match="no task"):
        mix_tasks({})
    both = {"a": make_teacher([1]), "b": make_teacher([1], training=False)}
    with pytest.raises(ValueError, match="cannot be mixed"):
        mix_tasks(both)


TASKS = """
[tasks.coffee]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 12
n_dev = 6

[tasks.tea]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 8
n_dev = 4
seed = 7
"""


PARTNER = RANKER.replace("BatchWorld", "PartnerWorld").replace(
    """
[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 16
""",
    "",
)


@pytest.mark.parametrize("text", [RANKER, PARTNER])
def test_multi_task_loss_and_accuracy_of_each_task_by_hand(text):
    before, _, rest = text.partition("[tasks.coffee]")
    experiment = Experiment.from_config(before + TASKS + rest[rest.index("[tokenizer]") :])
    agent, train = experiment.agent, experiment.training_split()
    agent.initialize(train, tokenizer=experiment.tokenizer, seed=1)
    with experiment.make_world(train, agent) as by_hand:
        by_hand.start_epoch(0, 1)
        while not by_hand.epoch_done():
            by_hand.parley()
            speakers = {line.split("]")[0] for line in by_hand.display().splitlines()}
            assert "[coffee+tea" not in speakers and speakers & {"[coffee", "[tea"}
            agent.update(experiment.optimizer)
    found = report_values(by_hand.report())
    for name in ("loss", "accuracy"):
        parts = [(found[f"{task}/{name}"], found[f"{task}/examples"]) for task in ("coffee", "tea")]
        whole = sum(value * n for value, n in parts) / found["examples"]
        assert found[name] == pytest.approx(whole) and parts[0] != parts[1]
        assert found[f"macro/{name}"] == pytest.approx(sum(value for value, _ in parts) / 2)
    # An evaluation by hand gives the same scores of each task as ``evaluate_agent``.
    dev = experiment.evaluation_split("dev")
    with agent.evaluating(), experiment.make_world(dev, agent) as by_hand:
        by_hand.reset_metrics()
        by_hand.start_epoch(0, 0)
        while not by_hand.epoch_done():
            by_hand.parley()
        found = report_values(by_hand.report())
    wanted = evaluate_agent(agent, dev, experiment.evaluation["world"])
    names = [f"{task}{name}" for task in ("", "coffee/", "tea/") for name in ("loss", "hits@1")]
    assert {name: found[name] for name in names} == {name: wanted[name] for name in names}
