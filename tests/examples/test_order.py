"""Orders: workers show every example exactly once, and any state is resumed in the same order."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.talk import (
    BATCHERS,
    SIZES,
    answer_batch,
    batches_left,
    cases,
    check_resumes,
    endless,
    episodes,
    ids_of,
    make_teacher,
    mix,
    rounds,
    through_json,
)
from thincdialog.batchers import Batchsort, Fixed, Words
from thincdialog.errors import DataError, ProtocolError
from thincdialog.messages import Message
from thincdialog.metrics import merge_reports
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.mutators.flatten import Flatten
from thincdialog.teachers import IterableTeacher


def shares(teacher, n, reads_apart=False):
    return [teacher.share_of(worker, n, reads_apart) for worker in range(n)]


@settings(max_examples=100)
@given(
    cases(),
    st.integers(1, 5),
    st.sampled_from(["threads", "processes", "in turns"]),
    st.integers(1, 9),
    BATCHERS,
)
def test_order_shows_each_example_exactly_once(case, n_workers, workers, n_copies, batcher):
    """This holds for any number of workers, in batches and through copies."""
    if workers == "threads":
        whole = case.make().shares(n_workers)
    else:
        whole = shares(case.make(), n_workers, reads_apart=workers == "processes")
    copies = [[share, *(share.clone() for _ in range(n_copies - 1))] for share in whole]
    if case.is_flat:
        for share in whole:
            share.set_batches(batcher)
    for epoch in range(2):
        said = []
        for share, own in zip(whole, copies):
            share.start_epoch(epoch, 7)
            if not case.is_flat:
                said += rounds(own)
                with pytest.raises(ProtocolError, match="past the end of the epoch"):
                    share.act()
                continue
            batches = batches_left(share)
            assert all(batches)
            said += sum(batches, [])
            with pytest.raises(ProtocolError, match="past the end of the epoch"):
                share.batch_act()
        assert Counter(said) == Counter(case.ids)


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(shown_once=False), st.integers(0, 2), st.integers(1, 9), BATCHERS, st.integers(0, 40))
def test_order_continues_where_a_state_was_taken(case, worker, n_copies, batcher, n_before):
    """The state is taken in the middle of episodes, blocks and windows. The next epoch is the same,
    too."""

    def make():
        teacher = case.make()
        teacher = teacher.share_of(worker, 3, reads_apart=worker == 2) if worker else teacher
        if case.is_flat:
            teacher.set_batches(batcher)
        return teacher

    def rest(teacher, copies):
        return batches_left(teacher) if case.is_flat else rounds(copies)

    original = make()
    copies = [] if case.is_flat else [original.clone() for _ in range(n_copies)]
    original.start_epoch(1, 3)
    for _ in range(n_before):
        if case.is_flat and not original.epoch_done():
            answer_batch(original)
        rounds(copies, 1)
    state, places = through_json([original.state(), [copy.place() for copy in copies]])
    resumed = make()
    resumed_copies = resumed.restore(state, places)
    assert [copy.place() for copy in resumed_copies] == places
    # A state that is saved again before anything was read.
    again = make()
    again_copies = again.restore(through_json(resumed.state()), places)
    expected = rest(original, copies)
    assert rest(resumed, resumed_copies) == expected == rest(again, again_copies)
    assert resumed.epoch_done()
    for each in (original, resumed):
        each.start_epoch(2, 3)
    assert rest(resumed, resumed_copies) == rest(original, copies)


@given(SIZES, st.integers(1, 5), st.booleans(), st.booleans(), st.integers(1, 9))
def test_order_shares_of_a_block_differ_by_at_most_one_episode(
    sizes, n, streaming, training, window
):
    teacher = make_teacher(sizes, streaming=streaming, window=window, training=training)
    said = [rounds([share]) for share in shares(teacher, n)]
    counts = [len({name.split("/")[0] for name in names}) for names in said]
    assert max(counts) - min(counts) <= -(-len(sizes) // window)


@pytest.mark.parametrize("streaming", [False, True])
def test_order_of_a_share_has_the_same_episodes_in_every_epoch_in_another_order(streaming):
    teacher = make_teacher([1] * 40, streaming=streaming, window=25)
    for share in shares(teacher, 3):
        epochs = []
        for epoch in range(3):
            share.start_epoch(epoch, 7)
            epochs.append(rounds([share]))
        assert len({frozenset(names) for names in epochs}) == 1
        assert len({tuple(names) for names in epochs}) == 3
    # The remainder of each block goes to a different worker.
    teacher = make_teacher([1] * 12, streaming=streaming, window=4)
    assert [len(rounds([share])) for share in shares(teacher, 3)] == [4, 4, 4]
    # One worker's share is all of the data.
    teacher.start_epoch(3, 5)
    (share,) = shares(teacher, 1)
    share.start_epoch(3, 5)
    assert rounds([share]) == rounds([teacher])


def test_order_shares_score_for_themselves_and_their_reports_add_up():
    teacher = make_teacher([1, 1, 1, 1, 1], training=False)
    teacher.set_metrics([Accuracy()])
    halves = shares(teacher, 2)
    for share in halves:
        while not share.epoch_done():
            message = share.act()
            share.observe({"text": message["eval_labels"][0] if share is halves[0] else "no"})
    reports = [share.report() for share in halves]
    right = reports[0]["examples"].value()
    assert sorted(report["examples"].value() for report in reports) == [2, 3]
    assert merge_reports(*reports)["accuracy"].value() == right / 5
    assert not teacher.report()["examples"].value()


def test_order_of_a_stream_is_read_once_for_all_places():
    n_reads = []

    def source():
        n_reads.append(0)
        for episode in episodes([4] * 30):
            n_reads[-1] += 1
            yield episode

    def make():
        made = IterableTeacher({"train": source}, streaming=True, shuffle_window=3)
        return made.for_split("train", training=True)

    original = make()
    copies = [original.clone() for _ in range(9)]
    rounds(copies[:4], 2)
    rounds(copies[4:], 2)
    state, places = original.state(), [copy.place() for copy in copies]
    assert len({place["block"] for place in places}) == 3
    n_reads.clear()
    again = make().restore(state, places)
    assert n_reads == [9]
    assert rounds(again) == rounds(copies)


@pytest.mark.parametrize("streaming", [False, True])
def test_order_of_a_teacher_without_copies_is_resumed(streaming):
    original = make_teacher([3, 2, 4], streaming=streaming)
    first = rounds([original], 2)
    resumed = make_teacher([3, 2, 4], streaming=streaming)
    resumed.restore(through_json(original.state()))
    rest = rounds([resumed])
    assert rest == rounds([original]) and len(first + rest) == 9
    # This state was taken after the end of the epoch.
    resumed.restore(through_json(original.state()))
    assert resumed.epoch_done()
    resumed.start_epoch(1, 0)
    assert len(rounds([resumed])) == 9


def test_order_has_no_place_between_an_act_and_its_reply():
    copy = make_teacher([2, 2]).clone()
    assert copy.place() is None
    copy.act()
    with pytest.raises(ProtocolError, match=r"give the reply to act\(\) before saving the state"):
        copy.place()


@given(SIZES, st.booleans(), st.integers(0, 9))
def test_order_repeats_acts_without_a_reply_after_a_restore(sizes, streaming, n_rounds):
    original = make_teacher(sizes, streaming=streaming)
    copies = [original.clone() for _ in range(3)]
    assert copies[0].place_of_act() is None
    rounds(copies, n_rounds)
    acts = [(copy, copy.act()) for copy in copies if not copy.epoch_done()]
    waiting, said = [copy for copy, _ in acts], [message for _, message in acts]
    places = through_json([copy.place_of_act() for copy in waiting])
    resumed = make_teacher(sizes, streaming=streaming)
    again = resumed.restore(through_json(original.state()), places)
    assert [copy.act() for copy in again] == said
    for copy in [*waiting, *again]:
        copy.observe(Message())
    assert rounds(again) == rounds(waiting)


@pytest.mark.parametrize("share", [(0, 1), (1, 2)])
def test_order_of_endless_data_is_resumed_in_a_later_pass(share):
    def make():
        return make_teacher([1, 3, 2], endless=True, window=2).share_of(*share)

    assert check_resumes(make, 7, 3, n_more=20)["shown"]["again"] > 0


def test_order_of_endless_data_never_ends_and_is_never_sampled():
    teacher = endless("e", 4)
    assert teacher.order.is_endless and teacher.n_examples is None and teacher.n_episodes is None
    assert set(Counter(rounds([teacher], 40)).values()) == {10}
    made = IterableTeacher({"train": episodes([1, 1])}, endless=True)
    evaluation = made.for_split("train")  # Shows each example once.
    assert not evaluation.order.is_endless and len(rounds([evaluation])) == 2
    with pytest.raises(DataError, match="never ends, so no sample"):
        made.for_split("train", training=True, max_examples=1)


@given(SIZES, st.integers(1, 9), st.integers(1, 9), st.booleans(), st.integers(0, 2), BATCHERS)
def test_order_of_a_stream_is_the_same_as_in_memory(
    sizes, n_copies, window, training, epoch, batcher
):
    orders = []
    for streaming in (False, True):
        original = make_teacher(
            sizes, training=training, streaming=streaming, window=window, flat=True
        )
        assert original.is_single_turn
        original.start_epoch(epoch, 3)
        copies = rounds([original.clone() for _ in range(n_copies)])
        original.set_batches(batcher)
        original.start_epoch(epoch, 3)
        batches = batches_left(original)
        orders.append((copies, batches))
        if not batcher.needs_lengths:  # Copies and batches show the same in the same order.
            assert sum(batches, []) == copies
    assert orders[0] == orders[1]


@pytest.mark.parametrize("batcher", [None, Batchsort(4, buffer=5)])
def test_order_is_a_function_of_seed_and_epoch(batcher):
    """It does not depend on earlier epochs, whether they were shown to the end or not."""

    def order(seed, epoch, before=(), n_rounds=None):
        original = make_teacher([1] * 50, window=20)
        if batcher is not None:
            original.set_batches(batcher)
        for done in before:
            original.start_epoch(done, seed)
            if batcher is None:
                rounds([original], n_rounds)
            while batcher is not None and n_rounds is None and not original.epoch_done():
                answer_batch(original)
        original.start_epoch(epoch, seed)
        return rounds([original]) if batcher is None else sum(batches_left(original), [])

    assert order(1, 2) == order(1, 2) == order(1, 2, before=(0, 1))
    assert order(1, 2) == order(1, 2, before=(0,), n_rounds=3)
    assert len({tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    # Each block (of 20 episodes) stays together.
    assert set(order(1, 2)[:20]) == set(ids_of([1] * 20))


@given(SIZES, st.integers(1, 60), st.booleans())
def test_order_of_a_sample_is_that_of_the_data(sizes, max_examples, streaming):
    made = IterableTeacher({"train": episodes(sizes)}, streaming=streaming, shuffle_window=4)
    sample = made.for_split("train", max_examples=max_examples, seed=5)
    said = rounds([sample])
    numbers = [int(name.split("/")[0]) for name in said]
    assert numbers == sorted(numbers) and said == [m["id"] for m in sample.examples()]
    assert len(said) >= min(max_examples, sum(sizes))
    assert len(said) < max_examples + max(sizes) or len(said) == sum(sizes)
    assert sample.n_examples == len(said) and sample.n_episodes == len(set(numbers))
    assert Counter(numbers) == {number: sizes[number] for number in set(numbers)}


def test_order_of_single_turns_is_known_of_a_stream_only_if_declared():
    assert not make_teacher([1, 1], streaming=True).is_single_turn
    assert make_teacher([1, 1]).is_single_turn and not make_teacher([1, 2]).is_single_turn
    assert make_teacher([1, 2], streaming=True, flat=True).is_single_turn
    assert not mix([[1, 1], [1, 2]]).is_single_turn and Flatten().single_turn


@pytest.mark.parametrize("batcher", [Fixed(4), Words(12, buffer=4)])
def test_order_state_of_other_data_of_the_same_size_is_an_error(batcher):
    def teacher(word):
        rows = [[(f"{word} {number}", "yes")] for number in range(20)]
        made = IterableTeacher({"train": rows}).for_split("train", training=True)
        made.set_batches(batcher)
        return made

    old = teacher("old")
    answer_batch(old)
    state = through_json(old.state())
    again, other = teacher("old"), teacher("new")
    again.restore(state)
    assert answer_batch(again) == answer_batch(old)
    with pytest.raises(DataError, match="when the state was saved"):
        other.restore(state)
        other.batch_act()
