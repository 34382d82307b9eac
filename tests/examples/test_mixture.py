"""Orders of mixtures: shares that are exact to within an episode, repeats, endless tasks."""

from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.talk import (
    BATCHERS,
    NAMES,
    SIZES,
    UNITS,
    WEIGHTS,
    all_ids,
    answer_batch,
    batches_left,
    endless,
    episodes,
    ids_of,
    make_teacher,
    mix,
    rounds,
)
from thincdialog.batchers import Fixed
from thincdialog.errors import DataError
from thincdialog.messages import Message
from thincdialog.teachers import IterableTeacher, mix_tasks
from thincdialog.training.progress import Epochs, Position

MANY_SIZES = st.lists(SIZES, min_size=2, max_size=3)


def amounts(many_sizes, unit):
    """Return the task and the number of units of each episode, by the first part of its ids."""
    found = {}
    for task, each in zip(NAMES, many_sizes):
        for number, episode in enumerate(episodes(each)):
            n_words = sum(len(f"{text} {label}".split()) for text, label in episode)
            n_units = {"episodes": 1, "examples": len(episode), "words": n_words}[unit]
            found[f"{task}/{number}"] = (task, n_units)
    return found


def rounds_of_firsts(mixture, n_copies):
    """Yield the episodes in the order in which they start. Each copy starts one when its last one
    has ended."""
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


@given(MANY_SIZES, WEIGHTS, UNITS, st.booleans(), st.booleans(), st.integers(1, 9))
def test_mixture_shares_are_exact_to_within_an_episode(
    many_sizes, weights, unit, repeat, streaming, n_copies
):
    # In repeating mixtures to the end, in others until the first task is used up.
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
    for name in rounds_of_firsts(mixture, n_copies):
        task, n_units = amount[name]
        given_units[task] += n_units
        whole = sum(given_units.values())
        for each in tasks:
            assert abs(given_units[each] - share[each] * whole) <= largest + 1e-6
        left[task] -= 1
        if not repeat and left[task] == 0:
            break


@given(MANY_SIZES, WEIGHTS, st.booleans(), BATCHERS)
def test_mixture_repeats_until_every_task_was_shown_completely(
    many_sizes, weights, streaming, batcher
):
    mixture = mix(many_sizes, weights, "examples", True, streaming=streaming, flat=True)
    mixture.set_batches(batcher)
    shown = Counter(sum(batches_left(mixture), []))
    assert set(shown) == set(all_ids(many_sizes))
    passes = []
    for task in mixture.tasks:
        own = [n for name, n in shown.items() if name.startswith(f"{task}/")]
        # A pass over the task ends before the next one begins.
        assert max(own) - min(own) <= 1
        passes.append(min(own))
    # The task that is completed last was shown once, and ends the epoch.
    assert min(passes) == 1
    exactly = [
        {n for name, n in shown.items() if name.startswith(f"{task}/")} for task in mixture.tasks
    ]
    assert {1} in exactly


@pytest.mark.parametrize("streaming", [False, True])
def test_mixture_repeats_nothing_for_a_worker_without_examples_of_a_task(streaming):
    mixture = mix([[1], [1] * 7], repeat=True, weights=[1, 1], streaming=streaming)
    shares = [mixture.share_of(worker, 2) for worker in range(2)]
    said = [rounds([share]) for share in shares]
    of_a = [[name for name in names if name.startswith("a/")] for names in said]
    assert sorted(map(bool, of_a)) == [False, True] and set(sum(of_a, [])) == {"a/0/0"}
    of_b = [name for names in said for name in names if name.startswith("b/")]
    assert sorted(of_b) == [f"b/{number}/0" for number in range(7)]


def test_mixture_shows_a_repeated_task_in_another_order():
    mixture = mix([[1] * 20, [1] * 60], [1, 1], repeat=True, window=100)
    said = rounds([mixture])
    passes = [name for name in said if name.startswith("a/")]
    assert len(passes) == 60 and len({tuple(passes[i : i + 20]) for i in (0, 20, 40)}) == 3


def test_threads_read_a_repeated_stream_together():
    begun = Counter()

    def stream(name, n):
        begun[name] += 1
        yield from ([Message(text=f"{name} {number}", labels=["b"])] for number in range(n))

    tasks = {
        name: IterableTeacher({"train": partial(stream, name, n)}, streaming=True)
        for name, n in (("short", 30), ("long", 100))
    }
    shown = {name: task.for_split("train", training=True) for name, task in tasks.items()}
    shares = mix_tasks(shown, weights=dict.fromkeys(tasks, 1), repeat=True).shares(3)
    expected = Counter()
    for epoch in range(2):
        for share in shares:  # One thread after the other, the furthest apart that threads can be.
            share.start_epoch(epoch, 7)
            rounds([share])
        expected["long"] += 1
        expected["short"] += 1 + max(share.order.parts[0].again for share in shares)
        assert begun == expected and expected["short"] > 3 * expected["long"]


@pytest.mark.parametrize("unit", ["episodes", "examples", "words"])
@pytest.mark.parametrize("weights", [None, [1, 1, 1], [2, 0.5, 7]])
def test_mixture_that_repeats_knows_the_length_of_its_epoch(unit, weights):
    mixture = mix([[1, 3] * 60, [2] * 500, [4, 1, 1] * 30], weights, unit, repeat=True)
    n_shown = len(rounds([mixture]))
    assert mixture.n_examples == pytest.approx(n_shown, rel=0.02)
    epochs, position = Epochs(mixture), Position()
    epochs.begin(position)
    position.examples = n_shown // 2
    epochs.locate(position, False)
    assert position.epoch == pytest.approx(0.5, abs=0.01)


def test_mixture_of_given_weights_is_periodic():
    mixture = mix([[1] * 40, [1] * 40, [1] * 40], [0.5, 0.3, 0.2])
    said = rounds([mixture], 40)
    order = "".join(name[0] for name in said)
    assert order == order[:10] * 4
    assert Counter(order[:10]) == {"a": 5, "b": 3, "c": 2}


@given(MANY_SIZES, UNITS)
def test_mixture_sizes_are_counted_in_the_unit(many_sizes, unit):
    mixture = mix(many_sizes, None, unit)
    mixture.act()
    totals = Counter()
    for task, n_units in amounts(many_sizes, unit).values():
        totals[task] += n_units
    mixture.observe(Message())
    shares = mixture.state()["shown"]["shares"]
    assert shares["weights"] == [totals[task] for task in mixture.tasks]


@pytest.mark.parametrize("size", [None, 7])
def test_mixture_endless_tasks_continue_in_the_next_epoch(size):
    tasks = {"a": make_teacher([1] * 30), "e": endless("e", size)}
    mixture = mix_tasks(tasks, weights={"a": 3, "e": 1})
    assert mixture.n_examples is None and not mixture.order.is_endless
    told = []
    for epoch in range(3):
        mixture.start_epoch(epoch, 0)
        said = rounds([mixture.clone() for _ in range(4)])
        assert Counter(n for n in said if n[0] == "a") == Counter(ids_of([1] * 30, "a/"))
        own = [name for name in said if name[0] == "e"]
        assert 9 <= len(own) <= 10
        told.extend(own)
    if size is None:
        assert len(set(told)) == len(told)
    else:
        assert max(Counter(told).values()) - min(Counter(told).values()) <= 1
    # Epoch 0 starts endless tasks from the beginning.
    mixture.start_epoch(0, 0)
    again = rounds([mixture])
    assert [n for n in again if n[0] == "e"] == told[: sum(n[0] == "e" for n in again)]


def test_mixture_of_endless_tasks_only_never_ends():
    mixture = mix_tasks({"e": endless("e"), "f": endless("f", 3)})
    assert mixture.order.is_endless
    mixture.set_batches(Fixed(10))
    for _ in range(20):
        answer_batch(mixture)
    assert not mixture.epoch_done()
    # Only a part of the data is used for vocabularies.
    assert len(list(mixture.texts())) == 2 * (5 + 3) and len(list(mixture.examples())) == 8


@pytest.mark.parametrize("alone", [False, True])
def test_mixture_empty_share_of_endless_tasks_is_done(alone):
    def make():
        tasks = {name: endless(name, size) for name, size in (("e", 2), ("f", 2), ("g", 1))}
        return tasks["e"] if alone else mix_tasks(tasks)

    shares = [make().share_of(worker, 7) for worker in range(7)]
    said = [set(rounds([share], 20)) for share in shares]
    empty = [share for share, own in zip(shares, said) if not own]
    assert len(empty) == (5 if alone else 4) and all(share.epoch_done() for share in empty)
    assert len(set().union(*said)) == (2 if alone else 5)
    assert not any(share.epoch_done() for share, own in zip(shares, said) if own)
    for share in empty:
        share.start_epoch(1, 0)
        assert share.epoch_done() and share.state()


def test_mixture_state_of_other_tasks_is_an_error():
    state = mix([[1], [1]]).state()
    with pytest.raises(DataError, match="saved state belongs to other tasks: a, b"):
        mix([[1], [1], [1]]).restore(state)
    tasks = mix([[1], [1]]).tasks
    with pytest.raises(DataError, match="b, a .*other tasks: a, b, in this order"):
        mix_tasks({"b": tasks["b"], "a": tasks["a"]}).restore(state)


def test_mixture_small_tasks_next_to_a_large_one_get_their_share_on_time():
    tasks = {f"t{n}": make_teacher([1] * 400, streaming=False) for n in range(12)}
    weights = dict.fromkeys(tasks, 1)
    weights["t0"] = 100
    mixture = mix_tasks(tasks, weights=weights, repeat=True)
    given_units = Counter()
    for whole, name in enumerate(rounds([mixture], 1000), start=1):
        given_units[name.split("/")[0]] += 1
        for task, weight in weights.items():
            assert abs(given_units[task] - whole * weight / 111) <= 1
