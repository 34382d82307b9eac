"""Shares: all workers together show every example once, each in an order of its own."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.teachers.talk import batches_left, ids_of, make_teacher, rounds
from thincdialog.batchers import Batchsort, Fixed, Words
from thincdialog.metrics import merge_reports
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.teachers import mix_tasks

sizes = st.lists(st.integers(1, 4), min_size=1, max_size=20)
n_workers = st.integers(1, 5)


def shares(teacher, n):
    return [teacher.share_of(worker, n) for worker in range(n)]


@given(sizes, n_workers, st.booleans(), st.booleans(), st.integers(1, 9), st.integers(0, 2))
def test_shares_show_each_example_once_and_differ_by_one_a_block(
    sizes, n, streaming, training, window, n_copies
):
    teacher = make_teacher(sizes, streaming=streaming, window=window, training=training)
    whole = shares(teacher, n)
    for epoch in range(2):
        said = []
        for share in whole:
            share.start_epoch(epoch, 7)
            said.append(rounds(share, [share, *(share.clone() for _ in range(n_copies))]))
            assert share.epoch_done()
        assert Counter(sum(said, [])) == Counter(ids_of(sizes))
        episodes = [len({name.split("/")[0] for name in names}) for names in said]
        n_blocks = -(-len(sizes) // window)
        assert max(episodes) - min(episodes) <= n_blocks


@pytest.mark.parametrize("streaming", [False, True])
def test_a_share_has_the_same_episodes_in_every_epoch_in_another_order(streaming):
    teacher = make_teacher([1] * 40, streaming=streaming, window=25)
    for share in shares(teacher, 3):
        epochs = []
        for epoch in range(3):
            share.start_epoch(epoch, 7)
            epochs.append(rounds(share, [share]))
        assert len({frozenset(names) for names in epochs}) == 1
        assert len({tuple(names) for names in epochs}) == 3


def test_what_is_left_over_of_each_block_goes_to_another_worker():
    teacher = make_teacher([1] * 12, streaming=True, window=4)
    assert [len(rounds(share, [share])) for share in shares(teacher, 3)] == [4, 4, 4]


@given(sizes, n_workers, st.sampled_from([Fixed(3), Batchsort(4, 2), Words(40, True, 3)]))
def test_shares_in_batches_show_each_example_once(sizes, n, batcher):
    teacher = make_teacher(sizes, flat=True)
    said = []
    for share in shares(teacher, n):
        share.set_batches(batcher)
        share.start_epoch(0, 1)
        for names in batches_left(share):
            said += names
    assert Counter(said) == Counter(ids_of(sizes))


@given(st.lists(sizes, min_size=2, max_size=3), n_workers, st.booleans())
def test_shares_of_a_mixture_show_each_example_once(many_sizes, n, streaming):
    tasks = {name: make_teacher(each, streaming=streaming) for name, each in zip("abc", many_sizes)}
    mixture = mix_tasks(tasks, weights=dict.fromkeys(tasks, 1.0))
    said = []
    for share in shares(mixture, n):
        share.start_epoch(0, 1)
        said += rounds(share, [share.clone() for _ in range(2)])
    wanted = [name for task, each in zip("abc", many_sizes) for name in ids_of(each, f"{task}/")]
    assert Counter(said) == Counter(wanted)


def test_one_share_of_one_is_the_whole_in_the_same_order():
    teacher = make_teacher([1, 2, 3, 1, 1, 2])
    (share,) = shares(teacher, 1)
    teacher.start_epoch(3, 5)
    share.start_epoch(3, 5)
    assert rounds(share, [share]) == rounds(teacher, [teacher])


@pytest.mark.parametrize("streaming", [False, True])
def test_a_share_goes_on_where_it_was(streaming):
    def make():
        teacher = make_teacher([1] * 23, streaming=streaming, window=5)
        return teacher.share_of(1, 3)

    share = make()
    share.start_epoch(1, 2)
    rounds(share, [share], 3)
    state = json.loads(json.dumps(share.state()))
    again = make()
    again.restore(state)
    assert rounds(again, [again]) == rounds(share, [share])


def test_shares_score_for_themselves_and_their_reports_add_up():
    teacher = make_teacher([1, 1, 1, 1, 1], training=False)
    teacher.set_metrics([Accuracy()])
    halves = shares(teacher, 2)
    for share in halves:
        share.start_epoch(0, 0)
        while not share.epoch_done():
            message = share.act()
            share.observe({"text": message["eval_labels"][0] if share is halves[0] else "no"})
    reports = [share.report() for share in halves]
    right = reports[0]["examples"].value()
    assert sorted(report["examples"].value() for report in reports) == [2, 3]
    merged = merge_reports(*reports)
    assert merged["accuracy"].value() == right / 5
    assert not teacher.report()["examples"].value()
