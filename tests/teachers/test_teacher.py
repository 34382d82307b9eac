"""The contract of teachers: labels, candidates, scores, and errors about wrong calls."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.talk import whole_batches
from thincdialog.batchers import Fixed
from thincdialog.errors import DataError, ProtocolError
from thincdialog.messages import Message, MessageBatch
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.mutators.flatten import Flatten
from thincdialog.teachers import IterableTeacher, Teacher, mix_tasks

lengths = st.lists(st.integers(1, 5), min_size=1, max_size=25)


def episodes(sizes):
    return [
        [(f"text {number}.{turn}", f"label {number}.{turn}") for turn in range(size)]
        for number, size in enumerate(sizes)
    ]


def teacher(sizes, *, training=True, streaming=False, window=4, mutators=None, **choices):
    made = IterableTeacher(
        {"train": episodes(sizes)}, streaming=streaming, shuffle_window=window, mutators=mutators
    )
    return made.for_split("train", training=training, **choices)


def run(original, n_copies):
    """Run an epoch in the way of a batch world. Return the messages of each copy, and all texts in
    order."""
    copies = [original.clone() for _ in range(n_copies)]
    seen = [[] for _ in copies]
    texts = []
    while not original.epoch_done() or not all(copy.epoch_done() for copy in copies):
        for copy, own in zip(copies, seen):
            if not copy.epoch_done():
                message = copy.act()
                own.append(message)
                texts.append(message["text"])
                copy.observe(Message(text="reply"))
    return seen, texts


def next_batch(original, n_rows):
    original.set_batches(Fixed(n_rows))
    return original.batch_act()


def test_teacher_drops_open_episodes_at_a_new_epoch():
    original = teacher([3, 3], training=False)
    copy = original.clone()
    copy.act()
    original.start_epoch(0, 0)
    assert copy.act()["text"] == "text 0.0"


@pytest.mark.parametrize("training, name", [(True, "labels"), (False, "eval_labels")])
def test_teacher_names_labels_after_their_use(training, name):
    message = teacher([1], training=training).act()
    assert message == {
        "id": "0/0", "text": "text 0.0", name: ["label 0.0"], "episode_done": True,
    }  # fmt: skip
    batch = next_batch(teacher([1], training=training), 5)
    assert list(batch) == [message]


def test_teacher_scores_replies_of_all_copies_together():
    original = teacher([2, 2, 2], training=False)
    original.set_metrics([Accuracy()])
    copies = [original.clone() for _ in range(2)]
    for number, copy in enumerate(copies):
        for _ in range(2):
            message = copy.act()
            copy.observe(Message(text=message["eval_labels"][0] if number else "wrong"))
    report = original.report()
    assert report["examples"].value() == 4 and report["accuracy"].value() == 0.5
    original.reset_metrics()
    assert original.report()["examples"].value() == 0


def test_teacher_scores_batches_like_single_replies():
    sizes = [1] * 7
    single, batched = teacher(sizes, training=False), teacher(sizes, training=False)
    for original in (single, batched):
        original.set_metrics([Accuracy()])
    while not single.epoch_done():
        label = single.act()["eval_labels"][0]
        single.observe(Message(text=label if label < "label 3" else "wrong"))
    while not batched.epoch_done():
        labels = next_batch(batched, 3).column("eval_labels")
        texts = [row[0] if row[0] < "label 3" else "wrong" for row in labels]
        batched.batch_observe(MessageBatch({"text": texts}, len(texts)))
    assert single.report() == batched.report()
    assert single.report()["accuracy"].value() == pytest.approx(3 / 7)


def test_teacher_counts_examples_without_labels_but_compares_none():
    data = [[{"text": "a", "labels": ["x"]}], [{"text": "b"}], [{"text": "c", "labels": "x"}]]
    original = IterableTeacher({"test": data}).for_split("test")
    original.set_metrics([Accuracy()])
    original.batch_observe([Message(text="x") for _ in next_batch(original, 3)])
    assert original.report()["examples"].value() == 3
    assert original.report()["accuracy"].value() == 1.0
    original.start_epoch(0, 0)
    assert "eval_labels" not in list(next_batch(original, 3))[1]


def test_teacher_ignores_further_replies_of_other_agents():
    original = teacher([1], training=False)
    original.act()
    original.observe(Message(agent="one"))
    original.observe(Message(agent="two"))
    assert original.report()["examples"].value() == 1
    with pytest.raises(ProtocolError, match=r"observe\(\) was called without an act"):
        original.observe(Message(agent="one"))


def test_teacher_misuse_names_the_call():
    unset = IterableTeacher({"train": episodes([1, 2])})
    with pytest.raises(ProtocolError, match=r"call for_split\(\) first"):
        unset.act()
    original = unset.for_split("train")
    with pytest.raises(ProtocolError, match=r"observe\(\) was called without"):
        original.observe(Message())
    with pytest.raises(ProtocolError, match=r"batch_observe\(\) was called without"):
        original.batch_observe([])
    with pytest.raises(ProtocolError, match=r"set_batches\(\) needs episodes of a single turn"):
        next_batch(original, 2)
    original.act()
    with pytest.raises(ProtocolError, match=r"act\(\) was called twice: call observe\(\)"):
        original.act()
    flat = teacher([1, 1])
    with pytest.raises(ProtocolError, match=r"batch_act\(\) was called before set_batches\(\)"):
        flat.batch_act()
    next_batch(flat, 2)
    with pytest.raises(ProtocolError, match=r"got 1 replies to 2 rows"):
        flat.batch_observe([Message()])
    with pytest.raises(ProtocolError, match=r"batch_act\(\) was called twice"):
        next_batch(flat, 2)
    flat.batch_observe([Message()] * 2)
    for call in (flat.act, lambda: next_batch(flat, 1)):
        with pytest.raises(ProtocolError, match="past the end of the epoch"):
            call()


def test_teacher_for_an_unknown_split_says_which_there_are():
    with pytest.raises(DataError, match="no split 'tset'; did you mean 'test'.*train, test"):
        IterableTeacher({"train": [], "test": []}).for_split("tset")


def test_teacher_reads_data_lazily_and_only_once():
    n_reads = Counter()

    def source():
        n_reads["train"] += 1
        return iter(episodes([1, 1]))

    original = IterableTeacher({"train": source})
    training, evaluation = (original.for_split("train", training=way) for way in (True, False))
    assert not n_reads
    assert training.n_examples == evaluation.n_examples == 2
    assert len(list(training.texts())) == 4 and len(list(evaluation.examples())) == 2
    assert n_reads["train"] == 1


def test_teacher_max_examples_is_exact_for_single_turns():
    samples = {
        tuple(run(teacher([1] * 40, training=False, max_examples=9, seed=seed), 1)[1])
        for seed in (0, 1, 2)
    }
    assert {len(sample) for sample in samples} == {9} and len(samples) == 3


@pytest.mark.parametrize("streaming", [False, True])
def test_teacher_draws_candidates_in_evaluation(streaming):
    choices = {"streaming": streaming, "n_candidates": 10, "seed": 4, "mutators": [Flatten()]}
    labels = {label for episode in episodes([1] * 30) for _, label in episode}
    original = teacher([1] * 30, training=False, **choices)
    original.set_batches(Fixed(7))
    rows = (row for batch in whole_batches(original) for row in batch)
    by_batch = {row["id"]: row["label_candidates"] for row in rows}
    original.start_epoch(1, 99)
    assert {m["id"]: m["label_candidates"] for m in run(original, 4)[0][2]}.items() <= (
        by_batch.items()
    )
    assert {m["id"]: m["label_candidates"] for m in original.examples()} == by_batch
    for row in original.examples():
        candidates = row["label_candidates"]
        assert len(set(candidates)) == len(candidates) == 10
        assert row["eval_labels"][0] in candidates and set(candidates) <= labels
    assert len({tuple(candidates) for candidates in by_batch.values()}) == 30
    assert "label_candidates" not in teacher([1] * 30, training=True, **choices).act()
    # Examples of a sample have the same candidates as in the whole split.
    few = teacher([1] * 30, training=False, max_examples=5, **choices)
    assert {m["id"]: m["label_candidates"] for m in few.examples()}.items() <= by_batch.items()


def test_teacher_gives_fixed_candidates_to_every_message_and_refuses_other_labels():
    original = IterableTeacher({"train": [[("a", "x"), ("b", "y")]]}, candidates=["x", "y", "z"])
    messages = list(original.for_split("train").examples())
    assert [message["label_candidates"] for message in messages] == [["x", "y", "z"]] * 2
    assert messages[0]["label_candidates"] is messages[1]["label_candidates"]
    original = IterableTeacher({"train": [[("a", "x"), ("b", "q")]]}, candidates=["x"], task="t")
    with pytest.raises(DataError, match="'q' of example '0/1' is not among the 1 fixed"):
        original.for_split("train").act()


def test_teacher_examples_carry_their_context():
    messages = list(teacher([3], training=True).examples())
    assert [len(message["context"]) for message in messages] == [0, 2, 4]
    assert messages[2]["context"][2:] == [(0, "text 0.1"), (1, "label 0.1")]
    assert all(message["episode_done"] for message in messages)
    assert "context" not in next(teacher([1]).examples())


LABELS = st.none() | st.lists(st.sampled_from("xyz"), max_size=3)


@given(
    st.lists(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=3), min_size=1, max_size=9),
    st.booleans(),
    st.booleans(),
    st.integers(1, 5),
    st.integers(0, 6),
)
def test_teacher_all_labels_are_those_of_the_examples(rows, training, streaming, window, sample):
    """This also holds if messages have no labels, or have them as ``eval_labels``."""

    def message(labels, evaluation):
        fields = {"text": "a", "labels": labels, "eval_labels": evaluation}
        return Message({name: value for name, value in fields.items() if value is not None})

    def source():
        return ([message(*fields) for fields in episode] for episode in rows)

    tasks = {
        name: Teacher({"train": source}, streaming=streaming, shuffle_window=window).for_split(
            "train", training=training, max_examples=max_examples
        )
        for name, max_examples in (("whole", 0), ("sample", sample))
    }
    texts = [label for episode in rows for own, other in episode for label in own or other or ()]
    if all(own != [] for episode in rows for own, _ in episode):
        assert list(tasks["whole"].all_labels()) == texts
    for shown in (*tasks.values(), mix_tasks(tasks)):
        expected = [label for example in shown.examples() for label in example.all_labels]
        assert list(shown.all_labels()) == expected


@pytest.mark.parametrize("streaming", [False, True])
def test_teacher_texts_holds_every_text_and_label_once(streaming):
    original = teacher([2, 1], streaming=streaming, window=1, max_examples=1)
    assert list(original.texts()) == [
        "text 0.0", "label 0.0", "text 0.1", "label 0.1", "text 1.0", "label 1.0",
    ]  # fmt: skip


def test_teacher_counts_a_stream_only_after_reading_it():
    original = teacher([2, 3], streaming=True)
    assert original.n_examples is None and original.n_episodes is None
    sampled = teacher([2, 3], streaming=True, max_examples=1)
    run(sampled, 1)
    assert sampled.n_episodes == 1


def test_teacher_of_a_stream_that_is_not_as_declared_is_an_error():
    lying = Teacher(
        {"train": lambda: iter([[Message(text="a", labels=["x"])] * 2])},
        streaming=True,
        single_turn=True,
        origin="there",
    )
    with pytest.raises(DataError, match="there.*should be a single turn"):
        next_batch(lying.for_split("train"), 1)


def test_teacher_without_examples_is_an_error():
    nothing = IterableTeacher({"train": episodes([2])}, mutators=[lambda episode: []])
    with pytest.raises(DataError, match="'train' has no examples, or its mutators left none"):
        nothing.for_split("train").act()


def test_teacher_takes_mutators_as_a_config_gives_them():
    flatten, drop = Flatten(), lambda episode: [[m for m in episode if m["text"] != "text 0.0"]]
    ways = [[flatten, drop], {"flatten": flatten, "drop": drop}, {"*": (flatten, drop)}]
    for mutators in ways:
        assert run(teacher([2], mutators=mutators), 1)[1] == ["text 0.1"]
