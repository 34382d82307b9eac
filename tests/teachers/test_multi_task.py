"""Mixtures: exactly once, shares exact to within an episode, repeats, endless tasks, reports."""

import json
from collections import Counter
from itertools import count, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.teachers.talk import answer_batch, batches_left, episodes, ids_of, make_teacher, rounds
from thincdialog.batchers import Batchsort, Fixed, Padded, Words
from thincdialog.errors import ConfigError, DataError, ProtocolError
from thincdialog.messages import Message
from thincdialog.metrics import merge_reports
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.mutators.flatten import Flatten
from thincdialog.teachers import IterableTeacher, MultiTask, mix_tasks
from thincdialog.teachers.labelled_text import LabelledText

NAMES = "abc"
sizes = st.lists(st.integers(1, 4), min_size=1, max_size=15)
many_sizes = st.lists(sizes, min_size=2, max_size=3)
units = st.sampled_from(["episodes", "examples", "words"])
weights = st.one_of(
    st.none(), st.lists(st.sampled_from([1, 2, 0.1, 5, 0.75]), min_size=3, max_size=3)
)
batchers = st.sampled_from([Fixed(3), Batchsort(4, 2), Words(40, True, 3), Padded(50, 100)])


def mix(many_sizes, weights=None, unit="examples", repeat=False, **choices):
    tasks = {name: make_teacher(each, **choices) for name, each in zip(NAMES, many_sizes)}
    given_weights = None if weights is None else dict(zip(tasks, weights))
    return mix_tasks(tasks, weights=given_weights, unit=unit, repeat=repeat)


def all_ids(many_sizes):
    return [name for task, each in zip(NAMES, many_sizes) for name in ids_of(each, f"{task}/")]


def amounts(many_sizes, unit):
    """Task and units of each episode, by what its ids begin with."""
    found = {}
    for task, each in zip(NAMES, many_sizes):
        for number, episode in enumerate(episodes(each)):
            n_words = sum(len(f"{text} {label}".split()) for text, label in episode)
            n_units = {"episodes": 1, "examples": len(episode), "words": n_words}[unit]
            found[f"{task}/{number}"] = (task, n_units)
    return found


@given(many_sizes, weights, units, st.booleans(), st.integers(1, 9), st.integers(1, 20))
def test_multi_task_shows_each_example_exactly_once(
    many_sizes, weights, unit, streaming, n_copies, window
):
    mixture = mix(many_sizes, weights, unit, streaming=streaming, window=window)
    for epoch in range(2):
        mixture.start_epoch(epoch, 3)
        said = rounds(mixture, [mixture.clone() for _ in range(n_copies)])
        assert Counter(said) == Counter(all_ids(many_sizes))
    assert mixture.report()["examples"].value() == 2 * sum(map(sum, many_sizes))


@given(many_sizes, weights, units, st.booleans(), batchers, st.integers(1, 20))
def test_multi_task_batches_show_each_example_exactly_once(
    many_sizes, weights, unit, streaming, batcher, window
):
    mixture = mix(many_sizes, weights, unit, streaming=streaming, window=window, flat=True)
    assert mixture.is_single_turn
    mixture.set_batches(batcher)
    orders = []
    for epoch in range(2):
        mixture.start_epoch(epoch, 3)
        orders.append(sum(batches_left(mixture), []))
        assert Counter(orders[-1]) == Counter(all_ids(many_sizes))
    # Fixed batches take what a single copy would say.
    mixture.start_epoch(1, 3)
    if not batcher.needs_lengths:
        assert rounds(mixture, [mixture.clone()]) == orders[1]


@given(many_sizes, weights, units, st.booleans(), st.booleans(), st.integers(1, 9))
def test_multi_task_shares_are_exact_to_within_an_episode(
    many_sizes, weights, unit, repeat, streaming, n_copies
):
    # In repeating mixtures to the end, in others until the first task has run out.
    mixture = mix(many_sizes, weights, unit, repeat, streaming=streaming)
    amount = amounts(many_sizes, unit)
    tasks = list(mixture.tasks)
    totals = Counter()
    for task, n_units in amount.values():
        totals[task] += n_units
    if weights is None:
        weights = [1] * 3 if streaming else [totals[task] for task in tasks]
    share = {task: weight / sum(weights[: len(tasks)]) for task, weight in zip(tasks, weights)}
    left = Counter(task for task, _ in amount.values())
    largest = max(n_units for _, n_units in amount.values())
    given_units = Counter()
    firsts = (name for name in rounds_of_firsts(mixture, n_copies))
    for name in firsts:
        task, n_units = amount[name]
        given_units[task] += n_units
        whole = sum(given_units.values())
        for each in tasks:
            assert abs(given_units[each] - share[each] * whole) <= largest + 1e-6
        left[task] -= 1
        if not repeat and left[task] == 0:
            break


def rounds_of_firsts(mixture, n_copies):
    """The episodes in the order of their beginning; each copy asks when it has ended one."""
    copies = [mixture.clone() for _ in range(n_copies)]
    known = [None] * n_copies
    while any(not copy.epoch_done() for copy in copies):
        for number, copy in enumerate(copies):
            if copy.epoch_done():
                continue
            message = copy.act()
            copy.observe(Message())
            if known[number] is None:
                yield message["id"].rpartition("/")[0]
            known[number] = None if message["episode_done"] else message["id"]


@given(many_sizes, weights, st.booleans(), batchers)
def test_multi_task_repeats_until_all_were_shown_whole(many_sizes, weights, streaming, batcher):
    mixture = mix(many_sizes, weights, "examples", True, streaming=streaming, flat=True)
    mixture.set_batches(batcher)
    shown = Counter(sum(batches_left(mixture), []))
    assert set(shown) == set(all_ids(many_sizes))
    passes = []
    for task in mixture.tasks:
        own = [n for name, n in shown.items() if name.startswith(f"{task}/")]
        # A pass ends before the next one begins.
        assert max(own) - min(own) <= 1
        passes.append(min(own))
    # The last task to be shown whole was shown once, and ends the epoch.
    assert min(passes) == 1
    exactly = [
        {n for name, n in shown.items() if name.startswith(f"{task}/")} for task in mixture.tasks
    ]
    assert {1} in exactly


@pytest.mark.parametrize("streaming", [False, True])
def test_multi_task_repeats_nothing_where_a_share_has_nothing_of_a_task(streaming):
    mixture = mix([[1], [1] * 7], repeat=True, weights=[1, 1], streaming=streaming)
    shares = [mixture.share_of(worker, 2) for worker in range(2)]
    said = [rounds(share, [share]) for share in shares]
    of_a = [[name for name in names if name.startswith("a/")] for names in said]
    assert sorted(map(bool, of_a)) == [False, True] and set(sum(of_a, [])) == {"a/0/0"}
    of_b = [name for names in said for name in names if name.startswith("b/")]
    assert sorted(of_b) == [f"b/{number}/0" for number in range(7)]


def test_multi_task_shows_a_repeated_task_in_another_order():
    mixture = mix([[1] * 20, [1] * 60], [1, 1], repeat=True, window=100)
    said = rounds(mixture, [mixture])
    passes = [name for name in said if name.startswith("a/")]
    assert len(passes) == 60 and len({tuple(passes[i : i + 20]) for i in (0, 20, 40)}) == 3


def test_multi_task_of_given_weights_is_periodic():
    mixture = mix([[1] * 40, [1] * 40, [1] * 40], [0.5, 0.3, 0.2])
    said = rounds(mixture, [mixture], 40)
    order = "".join(name[0] for name in said)
    assert order == order[:10] * 4
    assert Counter(order[:10]) == {"a": 5, "b": 3, "c": 2}


def test_multi_task_without_weights_all_end_together():
    mixture = mix([[1] * 300, [2] * 50, [1] * 20])
    said = rounds(mixture, [mixture])
    last = {task: max(i for i, name in enumerate(said) if name[0] == task) for task in NAMES}
    assert min(last.values()) > 0.9 * len(said)


@given(many_sizes, units)
def test_multi_task_sizes_are_counted_in_the_unit(many_sizes, unit):
    mixture = mix(many_sizes, None, unit)
    mixture.act()
    totals = Counter()
    for task, n_units in amounts(many_sizes, unit).values():
        totals[task] += n_units
    mixture.observe(Message())
    shares = mixture.state()["shown"]["shares"]
    assert shares["weights"] == [totals[task] for task in mixture.tasks]


def test_multi_task_with_a_weight_of_zero_is_left_out():
    mixture = mix([[1] * 3, [1] * 4, [1] * 5], [1, 0, 1])
    assert list(mixture.tasks) == ["a", "c"] and mixture.n_examples == 8
    assert {name[0] for name in rounds(mixture, [mixture])} == {"a", "c"}


def endless(name, size=None):
    """A task that never ends: a source without an end, or a short one begun again."""

    def source():
        numbers = count() if size is None else range(size)
        return ([(f"{name} {number}", f"label {number}")] for number in numbers)

    choices = {"shuffle_window": 5, "mutators": [Flatten()], "task": name}
    made = IterableTeacher({"train": source}, endless=True, **choices)
    return made.for_split("train", training=True)


@pytest.mark.parametrize("size", [None, 7])
def test_multi_task_endless_tasks_go_on_in_the_next_epoch(size):
    tasks = {"a": make_teacher([1] * 30), "e": endless("e", size)}
    mixture = mix_tasks(tasks, weights={"a": 3, "e": 1})
    assert mixture.n_examples is None and not mixture.is_endless
    told = []
    for epoch in range(3):
        mixture.start_epoch(epoch, 0)
        said = rounds(mixture, [mixture.clone() for _ in range(4)])
        assert Counter(n for n in said if n[0] == "a") == Counter(ids_of([1] * 30, "a/"))
        own = [name for name in said if name[0] == "e"]
        assert 9 <= len(own) <= 10
        told.extend(own)
    if size is None:
        assert len(set(told)) == len(told)
    else:
        assert max(Counter(told).values()) - min(Counter(told).values()) <= 1
    # A first epoch begins anew.
    mixture.start_epoch(0, 0)
    again = rounds(mixture, [mixture])
    assert [n for n in again if n[0] == "e"] == told[: sum(n[0] == "e" for n in again)]


def test_multi_task_of_endless_tasks_only_never_ends():
    mixture = mix_tasks({"e": endless("e"), "f": endless("f", 3)})
    assert mixture.is_endless
    mixture.set_batches(Fixed(10))
    for _ in range(20):
        answer_batch(mixture)
    assert not mixture.epoch_done()
    # Vocabularies are made from a part of it.
    assert len(list(mixture.texts())) == 2 * (5 + 3) and len(list(mixture.examples())) == 8


def test_teacher_endless_alone_never_ends_and_is_never_sampled():
    teacher = endless("e", 4)
    assert teacher.is_endless and teacher.n_examples is None and teacher.n_episodes is None
    said = rounds(teacher, [teacher], 40)
    assert set(Counter(said).values()) == {10}
    made = IterableTeacher({"train": episodes([1, 1])}, endless=True)
    assert not made.for_split("train").is_endless  # Evaluation shows each example once.
    evaluation = made.for_split("train")
    assert len(rounds(evaluation, [evaluation])) == 2
    with pytest.raises(DataError, match="never ends, so no sample"):
        made.for_split("train", training=True, max_examples=1)


@pytest.mark.parametrize("alone", [False, True])
def test_teacher_endless_share_with_nothing_in_it_is_done(alone):
    def make():
        tasks = {name: endless(name, size) for name, size in (("e", 2), ("f", 2), ("g", 1))}
        return tasks["e"] if alone else mix_tasks(tasks)

    shares = [make().share_of(worker, 7) for worker in range(7)]
    said = [set(rounds(share, [share], 20)) for share in shares]
    empty = [share for share, own in zip(shares, said) if not own]
    assert len(empty) == (5 if alone else 4) and all(share.epoch_done() for share in empty)
    assert len(set().union(*said)) == (2 if alone else 5)
    assert not any(share.epoch_done() for share, own in zip(shares, said) if own)
    for share in empty:
        share.start_epoch(1, 0)
        assert share.epoch_done() and share.state()


@settings(max_examples=60)
@given(many_sizes, weights, units, st.booleans(), st.booleans(), st.integers(0, 25), st.booleans())
def test_multi_task_resumes_in_the_identical_order(
    many_sizes, weights, unit, repeat, streaming, n_rounds, with_endless
):
    def make():
        tasks = {
            name: make_teacher(each, streaming=streaming) for name, each in zip(NAMES, many_sizes)
        }
        shares = None if weights is None else {**dict(zip(tasks, weights)), "e": 1}
        if with_endless:
            tasks["e"] = endless("e", 6)
        elif shares:
            del shares["e"]
        return mix_tasks(tasks, weights=shares, unit=unit, repeat=repeat)

    original = make()
    original.start_epoch(1, 4)
    copies = [original.clone() for _ in range(3)]
    rounds(original, copies, n_rounds)
    saved = json.loads(json.dumps([original.state(), [copy.place() for copy in copies]]))
    resumed = make()
    resumed_copies = resumed.restore(*saved)
    assert rounds(resumed, resumed_copies) == rounds(original, copies)
    for each in (original, resumed):
        each.start_epoch(2, 4)
    assert rounds(resumed, resumed_copies) == rounds(original, copies)


@settings(max_examples=60)
@given(many_sizes, weights, units, st.booleans(), batchers, st.integers(0, 12))
def test_multi_task_batches_resume_in_the_identical_order(
    many_sizes, weights, unit, repeat, batcher, n_before
):
    def make():
        mixture = mix(many_sizes, weights, unit, repeat, streaming=True, flat=True)
        mixture.set_batches(batcher)
        return mixture

    original = make()
    for _ in range(n_before):
        if not original.epoch_done():
            answer_batch(original)
    resumed = make()
    resumed.restore(json.loads(json.dumps(original.state())))
    assert batches_left(resumed) == batches_left(original)


def test_multi_task_state_of_other_tasks_is_an_error():
    state = mix([[1], [1]]).state()
    with pytest.raises(DataError, match="saved state is of other tasks: a, b"):
        mix([[1], [1], [1]]).restore(state)
    tasks = mix([[1], [1]]).tasks
    with pytest.raises(DataError, match="b, a .*other tasks: a, b, in this order"):
        mix_tasks({"b": tasks["b"], "a": tasks["a"]}).restore(state)


@settings(max_examples=30)
@given(many_sizes, st.integers(1, 5), st.booleans())
def test_multi_task_reports_each_task_macro_and_micro(many_sizes, n_copies, flat):
    mixture = mix(many_sizes, training=False, flat=flat)
    metric = Accuracy()
    mixture.set_metrics([metric])
    # Right for even episodes.
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
    assert metric.n_examples == 0  # The tasks have their own.


def reply_to(message):
    episode = message["id"].split("/")[1]
    return Message(text=f"label {episode}" if int(episode) % 2 == 0 else "wrong")


def test_multi_task_messages_keep_all_but_their_id():
    tasks = {"a": make_teacher([2]), "b": make_teacher([1])}
    mixture = mix_tasks(tasks)
    alone = {f"{name}/{m['id']}": m for name, task in tasks.items() for m in task.examples()}
    said = list(mixture.examples())
    assert [{**alone[m["id"]], "id": m["id"]} for m in said] == said
    assert mixture.n_examples == 3 and mixture.n_episodes == 2
    assert list(mixture.texts()) == [*tasks["a"].texts(), *tasks["b"].texts()]
    # The tasks have a place of their own.
    rounds(mixture, [mixture])
    assert mixture.epoch_done() and not tasks["a"].epoch_done()
    assert len(rounds(tasks["a"], [tasks["a"]])) == 2
    assert mixture.report()["examples"].value() == 3


def test_multi_task_draws_the_candidates_of_each_task():
    made = {name: IterableTeacher({"dev": episodes([1] * 12, name)}) for name in "ab"}
    tasks = {name: task.for_split("dev", n_candidates=4) for name, task in made.items()}
    mixture = mix_tasks(tasks)
    mixture.set_batches(Fixed(7))
    drawn = {}
    while not mixture.epoch_done():
        batch = mixture.batch_act()
        drawn.update((row["id"], row["label_candidates"]) for row in batch)
        mixture.batch_observe([Message()] * len(batch))
    assert drawn == {
        f"{name}/{m['id']}": m["label_candidates"]
        for name, task in tasks.items()
        for m in task.examples()
    }


def test_multi_task_with_a_task_of_several_turns_has_no_batches():
    mixture = mix([[1, 1], [1, 2]])
    mixture.set_batches(Fixed(2))
    assert not mixture.is_single_turn
    with pytest.raises(ProtocolError, match=r"a\+b.batch_act\(\) needs episodes of a single"):
        mixture.batch_act()
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
def test_mix_tasks_weights_that_cannot_be(weights, problem):
    tasks = {"news": make_teacher([1]), "chat": make_teacher([1])}
    with pytest.raises(ConfigError, match=problem):
        mix_tasks(tasks, weights=weights)


def test_mix_tasks_other_mistakes():
    tasks = {"news": make_teacher([1]), "macro": make_teacher([1])}
    with pytest.raises(ConfigError, match="the name that reports give"):
        mix_tasks(tasks)
    with pytest.raises(ConfigError, match="'unit' is 'word' - choose one of: episodes"):
        mix_tasks({"a": make_teacher([1])}, unit="word")
    with pytest.raises(ConfigError, match="no task"):
        mix_tasks({})
    both = {"a": make_teacher([1]), "b": make_teacher([1], training=False)}
    with pytest.raises(ValueError, match="cannot be mixed"):
        mix_tasks(both)


def test_multi_task_many_small_tasks_beside_a_large_one_wait_no_longer_than_their_share():
    tasks = {f"t{n}": make_teacher([1] * 400, streaming=False) for n in range(12)}
    weights = dict.fromkeys(tasks, 1)
    weights["t0"] = 100
    mixture = mix_tasks(tasks, weights=weights, repeat=True)
    given_units = Counter()
    for whole, name in enumerate(islice(rounds(mixture, [mixture], 1000), 1000), start=1):
        given_units[name.split("/")[0]] += 1
        for task, weight in weights.items():
            assert abs(given_units[task] - whole * weight / 111) <= 1
